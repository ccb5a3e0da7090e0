#include <tuza/http/wire/message_framing.h>

#include <algorithm>
#include <charconv>

namespace tuza::http {

// RFC 9112 2.2: a line ends in CRLF. Some parsers read a bare LF or CR as a line end, others as data. A line
// that begins with white space (obs-fold, 5.2) is a new field for some parsers, and continues the previous
// field for others.
MessageFraming::Checked MessageFraming::line_ends() const {
  for (std::size_t at = find_control_char(text_, 0); at < text_.size(); at = find_control_char(text_, at)) {
    if (text_[at] == '\n') return fail("line does not end in CRLF", at);
    if (text_[at] == '\r') {
      ++at;
      if (at == text_.size() || text_[at] != '\n') return fail("carriage return inside a line", at - 1);
      if (at + 1 < text_.size() && (text_[at + 1] == ' ' || text_[at + 1] == '\t'))
        return fail("folded header field", at + 1);
    }
    ++at;  // the parser judges all others
  }
  return {};
}

// RFC 9112 2.3: "HTTP/" DIGIT "." DIGIT, in upper case. llhttp also accepts RTSP and ICE.
MessageFraming::Checked MessageFraming::version(std::string_view text, std::size_t offset) {
  constexpr std::string_view kForm = "HTTP/1.";
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool well_formed = text.size() == kForm.size() + 1 && text.starts_with("HTTP/") && digit(text[5]) &&
                           text[6] == '.' && digit(text[7]);
  if (!well_formed) return fail("malformed HTTP version", offset);
  if (!text.starts_with(kForm) || text.back() > '1')
    return fail(ParseErrc::kUnknownVersion, "HTTP version not supported", offset);
  head_.version_minor = static_cast<std::uint8_t>(text.back() - '0');
  return {};
}

MessageFraming::Checked MessageFraming::field_name(const Head::Field& field) const {
  const std::string_view name = field.name.in(base_);
  if (name.empty()) return fail("header field without a name", field.value.begin);
  unsigned token = kTokenChar;  // no branch for each character: nearly all of them are right
  for (const char c : name) token &= detail::kCharTable[static_cast<unsigned char>(c)];
  if (token != 0) [[likely]]
    return {};
  const auto wrong = std::ranges::find_if_not(name, [](char c) { return is(c, kTokenChar); });
  return fail("malformed header field name", offset_of({wrong, name.end()}));
}

void MessageFraming::connection_options(std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view option = trim(list.substr(0, comma));
    close_ = close_ || equals_ignoring_case(option, "close");
    keep_alive_ = keep_alive_ || equals_ignoring_case(option, "keep-alive");
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// RFC 9112 6: the length of the body is given in at most one way.
MessageFraming::Checked MessageFraming::body_length() {
  head_.chunked = transfer_encoding_.value.has_value();
  head_.has_content_length = content_length_.value.has_value();
  head_.content_length = 0;
  if (head_.chunked) return codings();
  if (!head_.has_content_length) return {};
  const std::string_view digits = *content_length_.value;
  const std::size_t offset = offset_of(digits);
  if (content_length_.twice) return fail("more than one Content-Length", offset);
  // 8.6 of RFC 9110: 1*DIGIT. The accepted maximum leaves room for arithmetic.
  std::uint64_t length = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, length);
  const bool digit_first = !digits.empty() && digits.front() != '-';
  if (error != std::errc{} || stop != end || !digit_first || length > (std::uint64_t{1} << 62)) {
    return fail("malformed Content-Length", offset);
  }
  head_.content_length = length;
  return {};
}

MessageFraming::Checked MessageFraming::codings() const {
  const std::string_view codings = *transfer_encoding_.value;
  const std::size_t offset = offset_of(codings);
  if (head_.has_content_length) return fail("both Content-Length and Transfer-Encoding", offset);
  if (head_.version_minor == 0) return fail("Transfer-Encoding in HTTP/1.0", offset);
  if (transfer_encoding_.twice) return fail("more than one Transfer-Encoding", offset);
  if (equals_ignoring_case(codings, "chunked")) return {};
  // 6.1: unknown codings are refused as such, provided the body still has an end.
  const std::size_t comma = codings.rfind(',');
  const bool ends_chunked =
      comma != std::string_view::npos && equals_ignoring_case(trim(codings.substr(comma + 1)), "chunked");
  return ends_chunked ? fail(ParseErrc::kUnknownCoding, "transfer coding not implemented", offset)
                      : fail("malformed Transfer-Encoding", offset);
}

}  // namespace tuza::http
