// Splits a multipart body into parts, as it arrives: RFC 2046 5.1 with the restrictions of RFC 7578.
//
//     preamble CRLF--boundary CRLF head CRLFCRLF data CRLF--boundary CRLF ... CRLF--boundary-- epilogue
//
// One buffer. Its data is searched for the delimiter, CRLF--boundary, once: what cannot be the beginning of a delimiter
// is given away in place; the rest, shorter than a delimiter, moves to the front before the next read. The time is
// linear in the body, however it arrives.
//
// Stricter than RFC 2046: line ends are CRLF, heads are not folded, and "CRLF--boundary" that is no complete delimiter
// is malformed, not data. Errors are StatusError. Thread-unsafe; parks where the source does.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tuza::http {

class MultipartSource {
 public:
  // The next bytes, at least one; 0 at the end. May throw.
  virtual std::size_t read(std::span<char> into) = 0;

 protected:
  ~MultipartSource() = default;
};

class MultipartBody {
 public:
  // `boundary`: 1 to 70 bytes.
  MultipartBody(MultipartSource& source, std::string_view boundary, std::size_t head_bytes_max);

  // Goes to the next part; false at the end. The data of the part before must have been taken.
  bool next_part();
  // The header fields of the part: lines without the last CRLF. Valid until the next part.
  [[nodiscard]] std::string_view head() const { return head_; }
  // The next bytes of the part, or of the preamble; none at its end. Valid until the next call.
  std::string_view data();

 private:
  [[nodiscard]] std::string_view unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  // Reads more behind what is there.
  bool fill_if_any();
  void fill();
  void end_form();
  // Has at least that many unread bytes afterwards.
  void need(std::size_t bytes);
  [[nodiscard]] std::size_t begin_of_delimiter(std::string_view text) const;
  void take_head();

  MultipartSource& source_;
  const std::string delimiter_;
  const std::size_t head_bytes_max_;
  const std::size_t capacity_;
  const std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::string head_;
  bool at_delimiter_ = false;
  bool ended_ = false;
};

// The boundary in a Content-Type field; nullopt if it is no multipart/form-data, or has no valid boundary.
[[nodiscard]] std::optional<std::string> multipart_boundary(std::string_view content_type);

}  // namespace tuza::http
