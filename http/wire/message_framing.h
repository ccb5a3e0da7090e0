// What both directions share of framing: line ends, the fields that delimit a body or a connection.
#pragma once

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/parse_error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>

namespace tuza::http {

class MessageFraming {
 public:
  MessageFraming(const MessageFraming&) = delete;
  MessageFraming& operator=(const MessageFraming&) = delete;

 protected:
  using Checked = std::expected<void, ParseError>;
  // A field that may come once: its value, and whether it came again.
  struct Once {
    std::optional<std::string_view> value;
    bool twice = false;
    void remember(std::string_view next) {
      twice = twice || value.has_value();
      value = next;
    }
  };

  MessageFraming(const char* base, Head& head) : base_(base), head_(head), text_(base, head.bytes) {}
  ~MessageFraming() = default;

  [[nodiscard]] Checked line_ends() const;
  // "HTTP/1.1"; sets version_minor.
  [[nodiscard]] Checked version(std::string_view text, std::size_t offset);
  // RFC 9112 5.1: a field name is a token, directly followed by the colon.
  [[nodiscard]] Checked field_name(const Head::Field& field) const;
  // Takes white space off both ends of the value, for all who will read it.
  std::string_view trim_value(Head::Field& field) const {
    const std::string_view value = trim(field.value.in(base_));
    field.value = slice(value);
    return value;
  }
  // Remembers the fields that body_length() and connection() are about; all others are left to the direction, and to users.
  void remember(std::string_view name, std::string_view value) {
    if (name.size() == 10 && equals_ignoring_case(name, "Connection")) connection_options(value);
    if (name.size() == 14 && equals_ignoring_case(name, "Content-Length")) content_length_.remember(value);
    if (name.size() == 17 && equals_ignoring_case(name, "Transfer-Encoding"))
      transfer_encoding_.remember(value);
  }
  [[nodiscard]] Checked body_length();
  // RFC 9112 9.3.
  void connection() { head_.keep_alive = head_.version_minor >= 1 ? !close_ : keep_alive_ && !close_; }

  [[gnu::cold]] static Checked fail(std::string_view text, std::size_t offset) {
    return fail(ParseErrc::kMalformed, text, offset);
  }
  [[gnu::cold]] static Checked fail(ParseErrc code, std::string_view text, std::size_t offset) {
    return std::unexpected(ParseError{code, text, offset});
  }
  [[nodiscard]] HeadSlice slice(std::string_view part) const {
    return {static_cast<std::uint32_t>(part.data() - base_), static_cast<std::uint32_t>(part.size())};
  }
  [[nodiscard]] std::size_t offset_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - base_);
  }

  const char* const base_;
  Head& head_;
  const std::string_view text_;
  Once content_length_, transfer_encoding_;

 private:
  void connection_options(std::string_view list);
  [[nodiscard]] Checked codings() const;

  bool close_ = false, keep_alive_ = false;
};

}  // namespace tuza::http
