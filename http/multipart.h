// Public header, part of <tuza/http.h>.
//
// Uploads: the parts of a multipart/form-data body (RFC 7578), one after the other, while they arrive.
//
//     http::Multipart form(req, {.file_bytes_max = 50 << 20, .total_bytes_max = 60 << 20});
//     for (http::Part& part : form) {
//       if (!part.is_file()) { note(part.name(), part.text()); continue; }
//       const http::SavedFile file = part.save("/var/lib/photos");
//       remember(file.path, part.safe_file_name());
//     }
//
// Nothing of a file is kept in memory but the piece that is read. Limits are checked while reading: whoever sends more
// gets 413 without being read to the end. The server's own limit, body_bytes_max, holds as well and must not be lower;
// body_limit() raises it for a route.
//
// Errors are thrown as StatusError: 415 if the body is no multipart/form-data, 413 beyond a limit, 400 for what is
// malformed, and the status that fits if the body cannot be read (400, 408, 413). A handler that lets them pass answers
// with that status.
//
// Thread-unsafe: belongs to the handler's goroutine, like the request, which must outlive it. Everything that reads parks.
#pragma once

#include <tuza/http/header_range.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

class Request;
class MultipartBody;

struct MultipartLimits {
  std::size_t parts_max = 100;
  std::size_t header_bytes_max = 8 << 10;                   // of each part
  std::size_t field_bytes_max = 64 << 10;                   // of each part without a file name
  std::uint64_t file_bytes_max = std::uint64_t{10} << 20;   // of each file
  std::uint64_t total_bytes_max = std::uint64_t{32} << 20;  // of the whole body
};

struct SaveOptions {
  // In the directory; a file of that name is replaced. Empty: a random name, the safe choice. std::invalid_argument for
  // a path, "." or "..".
  std::string name{};
  std::uint32_t mode = 0600;
  bool sync = false;  // return when the file would survive a power failure
};
struct SavedFile {
  std::string path;  // directory and name
  std::string name;
  std::uint64_t bytes = 0;
};

class Part {
 public:
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  // The name of the form's field.
  [[nodiscard]] std::string_view name() const { return name_; }
  // The name that the client gives to the file, as it is: for people. It may be a path, and is no name for a file here.
  [[nodiscard]] const std::optional<std::string>& file_name() const { return file_name_; }
  [[nodiscard]] bool is_file() const { return file_name_.has_value(); }
  // The same as one component of a path, of at most 200 bytes: without folders, control characters, what reverses the
  // direction of writing, what Windows does not allow, and dots in front. "file" if nothing is left.
  [[nodiscard]] std::string safe_file_name() const;
  // As the client says, "image/png"; empty if it does not. It is not to be trusted.
  [[nodiscard]] std::string_view content_type() const;
  // The value of the first header field of the part with that name, ignoring case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;

  // The next bytes; none at the end of the part. Valid until the next call. Parks.
  [[nodiscard]] std::string_view read();
  // All that has not been read yet, up to `field_bytes_max`. Parks.
  [[nodiscard]] std::string text();
  // Writes what has not been read yet to a file in `directory`, which exists. The file appears when it is complete, and
  // with its final name: until then it is ".upload-*.part", which is removed if anything fails (a process that is killed
  // leaves it there). Throws StatusError(507) if the disk is full, std::runtime_error if the file cannot be written for
  // another reason. The writes block as File does. Parks.
  SavedFile save(std::string_view directory, const SaveOptions& options = {});

 private:
  friend class Multipart;
  explicit Part(MultipartBody& body) : body_(body) {}
  void begin(std::uint64_t bytes_max, std::size_t field_bytes_max);

  MultipartBody& body_;
  std::string name_;
  std::optional<std::string> file_name_;
  std::uint64_t bytes_ = 0, bytes_max_ = 0;
  std::size_t field_bytes_max_ = 0;
};

class Multipart {
 public:
  explicit Multipart(Request& req, const MultipartLimits& limits = {});
  ~Multipart();
  Multipart(const Multipart&) = delete;
  Multipart& operator=(const Multipart&) = delete;

  // The next part; null after the last. What was not read of the part before is skipped, within its limits. There is one
  // Part object: pointers and views of the part before end here. Parks.
  [[nodiscard]] Part* next();

  // For one loop.
  class iterator {
   public:
    using value_type = Part;
    using difference_type = std::ptrdiff_t;
    [[nodiscard]] Part& operator*() const { return *part_; }
    iterator& operator++() {
      part_ = form_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return part_ == nullptr; }

   private:
    friend class Multipart;
    explicit iterator(Multipart& form) : form_(&form), part_(form.next()) {}
    Multipart* form_;
    Part* part_;
  };
  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  class Source;
  const MultipartLimits limits_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<MultipartBody> body_;
  Part part_;
  std::size_t parts_ = 0;
};

}  // namespace tuza::http
