#include <tuza/http/wire/framing.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace tuza::http {
namespace {

using Checked = std::expected<void, BadRequest>;

class Framing {
 public:
  Framing(const char* base, Head& head, bool connect)
      : base_(base), head_(head), text_(base, head.bytes), connect_(connect) {}

  Checked run() {
    for (const auto step : {&Framing::line_ends, &Framing::request_line, &Framing::target, &Framing::fields,
                            &Framing::body_length, &Framing::host}) {
      if (Checked checked = (this->*step)(); !checked) return checked;
    }
    return {};
  }

 private:
  Checked line_ends();
  Checked request_line();
  Checked target();
  Checked connect_target(std::string_view target);
  Checked absolute_target(std::string_view target, std::size_t authority);
  Checked fields();
  Checked field(const Head::Field& field);
  Checked body_length();
  Checked host();

  static Checked fail(int status, std::string_view text, std::size_t offset) {
    return std::unexpected(BadRequest{status, text, offset});
  }
  HeadSlice slice(std::string_view part) const {
    return {static_cast<std::uint32_t>(part.data() - base_), static_cast<std::uint32_t>(part.size())};
  }
  std::size_t offset_of(std::string_view part) const { return static_cast<std::size_t>(part.data() - base_); }
  void expectations(std::string_view list);
  void connection_options(std::string_view list);

  const char* const base_;
  Head& head_;
  const std::string_view text_;
  const bool connect_;
  std::optional<std::string_view> host_, content_length_, transfer_encoding_;
  bool host_twice_ = false, length_twice_ = false, encoding_twice_ = false, bad_expectation_ = false;
  bool close_ = false, keep_alive_ = false;
};

// RFC 9112 2.2: a line ends in CRLF. Some parsers read a bare LF or CR as a line end, others as data. A line
// that begins with white space (obs-fold, 5.2) is a new field for some parsers, and continues the previous
// field for others.
Checked Framing::line_ends() {
  std::size_t from = 0;
  while (from < text_.size()) {
    const void* at = std::memchr(text_.data() + from, '\n', text_.size() - from);
    if (at == nullptr) break;
    const std::size_t lf = static_cast<std::size_t>(static_cast<const char*>(at) - text_.data());
    if (lf == 0 || text_[lf - 1] != '\r') return fail(400, "line does not end in CRLF", lf);
    if (lf - 1 > from && std::memchr(text_.data() + from, '\r', lf - 1 - from) != nullptr) {
      return fail(400, "carriage return inside a line", from);
    }
    if (lf + 1 < text_.size() && (text_[lf + 1] == ' ' || text_[lf + 1] == '\t')) {
      return fail(400, "folded header field", lf + 1);
    }
    from = lf + 1;
  }
  return {};
}

// RFC 9112 3: method SP target SP version CRLF, single spaces, nothing else. Empty lines before the request
// line have been skipped (2.2).
Checked Framing::request_line() {
  const std::size_t begin = text_.find_first_not_of("\r\n");
  const std::string_view method = text_.substr(begin, head_.target.begin - begin);
  if (method.size() < 2 || method.back() != ' ') return fail(400, "malformed request line", begin);
  const std::optional<Method> known = parse_method(method.substr(0, method.size() - 1));
  if (!known) {
    const bool token =
        std::all_of(method.begin(), method.end() - 1, [](char c) { return is(c, kTokenChar); });
    return token ? fail(501, "method not implemented", begin) : fail(400, "malformed method", begin);
  }
  head_.method = *known;
  const std::size_t after = head_.target.begin + head_.target.size;
  const std::string_view version = text_.substr(after, text_.find('\r', after) - after);
  constexpr std::string_view kForm = " HTTP/1.";
  // 2.3: "HTTP/" DIGIT "." DIGIT, in upper case. llhttp also accepts RTSP and ICE.
  const bool well_formed = version.size() == kForm.size() + 1 && version.starts_with(" HTTP/") &&
                           version[6] >= '0' && version[6] <= '9' && version[7] == '.' && version[8] >= '0' &&
                           version[8] <= '9';
  if (!well_formed) return fail(400, "malformed HTTP version", after);
  if (!version.starts_with(kForm) || version.back() > '1')
    return fail(505, "HTTP version not supported", after);
  head_.version_minor = static_cast<std::uint8_t>(version.back() - '0');
  return {};
}

// RFC 9112 3.2: origin-form, absolute-form, and "*" for OPTIONS. Only CONNECT uses authority-form.
Checked Framing::target() {
  const std::string_view target = head_.target.in(base_);
  const std::size_t offset = head_.target.begin;
  if (head_.method == Method::kConnect) return connect_target(target);
  CharClass allowed = kPathChar;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == '?') allowed = kQueryChar;
    if (!is(target[i], allowed)) return fail(400, "malformed request target", offset + i);
  }
  if (target.front() == '/') {
    head_.host = HeadSlice{};
    const std::size_t mark = std::min(target.find('?'), target.size());
    head_.path = slice(target.substr(0, mark));
    head_.query = slice(target.substr(std::min(mark + 1, target.size())));
    return {};
  }
  if (target == "*" && head_.method == Method::kOptions) {
    head_.host = HeadSlice{};
    head_.path = slice(target);
    head_.query = slice(target.substr(1));
    return {};
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (equals_ignoring_case(target.substr(0, scheme.size()), scheme)) {
      head_.https_target = scheme.size() == 8;
      return absolute_target(target, scheme.size());
    }
  }
  return fail(400, "malformed request target", offset);
}

// RFC 9112 3.2.3: host and port, both of them. host() checks their form.
Checked Framing::connect_target(std::string_view target) {
  const std::size_t offset = head_.target.begin;
  if (!connect_) return fail(501, "CONNECT is not implemented", offset);
  const std::size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == target.size() || target.back() == ']') {
    return fail(400, "malformed request target", offset);
  }
  head_.host = slice(target);
  // The path slice uses the nearest slash, which is in the version: " HTTP/1.1".
  head_.path = slice(std::string_view(target.data() + target.size() + 5, 1));
  head_.query = slice(target.substr(target.size()));
  return {};
}

// RFC 9112 3.2.2: the authority of an absolute target replaces the Host field.
Checked Framing::absolute_target(std::string_view target, std::size_t authority) {
  const std::size_t end = std::min(target.find_first_of("/?", authority), target.size());
  const std::size_t mark = std::min(target.find('?', end), target.size());
  head_.host = slice(target.substr(authority, end - authority));
  if (head_.host.size == 0) return fail(400, "request target without a host", head_.target.begin);
  // "http://example.org" requests "/": the path slice uses the nearest slash, which is in the scheme.
  head_.path = end == mark ? slice(target.substr(authority - 1, 1)) : slice(target.substr(end, mark - end));
  head_.query = slice(target.substr(std::min(mark + 1, target.size())));
  return {};
}

Checked Framing::fields() {
  for (std::uint32_t i = 0; i < head_.field_count; ++i) {
    if (Checked checked = field(head_.fields[i]); !checked) return checked;
  }
  if (bad_expectation_) return fail(417, "unknown expectation", 0);
  head_.keep_alive = head_.version_minor >= 1 ? !close_ : keep_alive_ && !close_;  // RFC 9112 9.3
  return {};
}

// Interprets the fields that determine the framing of the message; all others are left to the handler.
Checked Framing::field(const Head::Field& field) {
  const std::string_view name = field.name.in(base_);
  const std::string_view value = trim(field.value.in(base_));
  const auto remember = [value](std::optional<std::string_view>& slot, bool& twice) {
    twice = twice || slot.has_value();
    slot = value;
  };
  switch (name.size()) {
    case 4:
      if (equals_ignoring_case(name, "Host")) remember(host_, host_twice_);
      break;
    case 6:
      if (equals_ignoring_case(name, "Expect") && head_.version_minor >= 1) expectations(value);
      break;
    case 10:
      if (equals_ignoring_case(name, "Connection")) connection_options(value);
      break;
    case 14:
      if (equals_ignoring_case(name, "Content-Length")) remember(content_length_, length_twice_);
      break;
    case 17:
      if (equals_ignoring_case(name, "Transfer-Encoding")) remember(transfer_encoding_, encoding_twice_);
      break;
    default: break;
  }
  // 5.1: a field name is a token, directly followed by the colon.
  if (name.empty()) return fail(400, "header field without a name", offset_of(value));
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is(name[i], kTokenChar)) return fail(400, "malformed header field name", field.name.begin + i);
  }
  return {};
}

// RFC 9110 10.1.1: a list, of which "100-continue" is the only defined element. Empty elements are none (5.6.1).
void Framing::expectations(std::string_view list) {
  while (!list.empty()) {
    const std::string_view one = take_item(list, ',');
    const bool known = equals_ignoring_case(one, "100-continue");
    head_.expects_continue = head_.expects_continue || known;
    bad_expectation_ = bad_expectation_ || (!known && !one.empty());
  }
}

void Framing::connection_options(std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view option = trim(list.substr(0, comma));
    close_ = close_ || equals_ignoring_case(option, "close");
    keep_alive_ = keep_alive_ || equals_ignoring_case(option, "keep-alive");
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// RFC 9112 6: the length of the body is given in at most one way.
Checked Framing::body_length() {
  head_.chunked = transfer_encoding_.has_value();
  head_.has_content_length = content_length_.has_value();
  head_.content_length = 0;
  if (transfer_encoding_) {
    const std::size_t offset = offset_of(*transfer_encoding_);
    if (content_length_) return fail(400, "both Content-Length and Transfer-Encoding", offset);
    if (head_.version_minor == 0) return fail(400, "Transfer-Encoding in HTTP/1.0", offset);
    if (encoding_twice_) return fail(400, "more than one Transfer-Encoding", offset);
    if (equals_ignoring_case(*transfer_encoding_, "chunked")) return {};
    // 6.1: unknown codings get 501, provided the body still has an end.
    const std::size_t comma = transfer_encoding_->rfind(',');
    const bool ends_chunked = comma != std::string_view::npos &&
                              equals_ignoring_case(trim(transfer_encoding_->substr(comma + 1)), "chunked");
    return ends_chunked ? fail(501, "transfer coding not implemented", offset)
                        : fail(400, "malformed Transfer-Encoding", offset);
  }
  if (!content_length_) return {};
  const std::size_t offset = offset_of(*content_length_);
  if (length_twice_) return fail(400, "more than one Content-Length", offset);
  // 8.6 of RFC 9110: 1*DIGIT. The accepted maximum leaves room for arithmetic.
  std::uint64_t length = 0;
  const char* end = content_length_->data() + content_length_->size();
  const auto [stop, error] = std::from_chars(content_length_->data(), end, length);
  const bool digit_first = !content_length_->empty() && content_length_->front() != '-';
  if (error != std::errc{} || stop != end || !digit_first || length > (std::uint64_t{1} << 62)) {
    return fail(400, "malformed Content-Length", offset);
  }
  head_.content_length = length;
  return {};
}

// RFC 3986 3.2.2: an IPv6 address; RFC 6874: behind it "%25" and the zone that it is valid in.
bool is_ipv6(std::string_view text) {
  const std::size_t percent = std::min(text.find('%'), text.size());
  const std::string_view address = text.substr(0, percent);
  const bool digits = std::all_of(address.begin(), address.end(),
                                  [](char c) { return is(c, kHexDigit) || c == ':' || c == '.'; });
  if (!digits || address.size() < 2) return false;
  if (percent == text.size()) return true;
  constexpr std::string_view kZone = "%25";
  if (!text.substr(percent).starts_with(kZone) || text.size() == percent + kZone.size()) return false;
  for (std::size_t i = percent + kZone.size(); i < text.size(); ++i) {
    const bool escape = is_percent_escape(text, i);
    if (!escape && (!is(text[i], kHostChar) || std::string_view("!$&'()*+,;=").contains(text[i])))
      return false;
    if (escape) i += 2;
  }
  return true;
}

// RFC 3986 3.2.2: a name, an IPv4 address, or an IPv6 address in brackets; an optional port of digits.
bool is_host_and_port(std::string_view text) {
  std::size_t end = 0;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos || !is_ipv6(text.substr(1, bracket - 1))) return false;
    end = bracket + 1;
  } else {
    while (end < text.size() && (is(text[end], kHostChar) || is_percent_escape(text, end))) {
      end += text[end] == '%' ? 3 : 1;
    }
    // Without this check, two Host fields that an intermediary has joined with a comma would pass as one.
    if (text.substr(0, end).find(',') != std::string_view::npos) return false;
  }
  if (end == text.size()) return true;
  const std::string_view port = text.substr(end + 1);
  return text[end] == ':' && port.size() <= 5 &&
         std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// RFC 9112 3.2: exactly one Host in 1.1, at most one in 1.0, and well-formed, even where it is not used.
Checked Framing::host() {
  if (host_twice_) return fail(400, "more than one Host", 0);
  if (!host_ && head_.version_minor >= 1) return fail(400, "missing Host", 0);
  if (host_ && !is_host_and_port(*host_)) return fail(400, "malformed Host", offset_of(*host_));
  if (head_.host.size > 0) {
    if (!is_host_and_port(head_.host.in(base_)))
      return fail(400, "malformed request target", head_.host.begin);
    return {};
  }
  // RFC 9110 4.2.1: an http URI has a host. Only "*" names no resource.
  if (host_ && host_->empty() && head_.target.in(base_) != "*")
    return fail(400, "empty Host", offset_of(*host_));
  if (host_) head_.host = slice(*host_);
  return {};
}

}  // namespace

std::expected<void, BadRequest> frame(const char* base, Head& head, bool connect) {
  head.expects_continue = head.https_target = false;
  return Framing(base, head, connect).run();
}

}  // namespace tuza::http
