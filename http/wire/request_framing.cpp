#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/host.h>
#include <tuza/http/wire/list.h>
#include <tuza/http/wire/message_framing.h>

#include <algorithm>
#include <optional>

namespace tuza::http {
namespace {

class RequestFraming final : MessageFraming {
 public:
  RequestFraming(const char* base, RequestHead& head, bool connect)
      : MessageFraming(base, head), line_(head), connect_(connect) {}

  Checked run() {
    if (Checked checked = line_ends(); !checked) return checked;
    if (Checked checked = request_line(); !checked) return checked;
    if (Checked checked = target(); !checked) return checked;
    if (Checked checked = fields(); !checked) return checked;
    if (Checked checked = body_length(); !checked) return checked;
    return host();
  }

 private:
  Checked request_line();
  Checked target();
  Checked connect_target(std::string_view target);
  Checked absolute_target(std::string_view target, std::size_t authority);
  Checked fields();
  Checked host();
  void expectations(std::string_view list);

  RequestLine& line_;
  const bool connect_;
  Once host_;
  bool bad_expectation_ = false;
};

// RFC 9112 3: method SP target SP version CRLF, single spaces, nothing else. Empty lines before the request
// line have been skipped (2.2).
RequestFraming::Checked RequestFraming::request_line() {
  std::size_t begin = 0;
  while (text_[begin] == '\r' || text_[begin] == '\n') ++begin;
  const std::string_view method = text_.substr(begin, line_.target.begin - begin);
  if (method.size() < 2 || method.back() != ' ') return fail("malformed request line", begin);
  const std::optional<Method> known = parse_method(method.substr(0, method.size() - 1));
  if (!known) {
    const bool token =
        std::all_of(method.begin(), method.end() - 1, [](char c) { return is(c, kTokenChar); });
    return token ? fail(ParseErrc::kUnknownMethod, "method not implemented", begin)
                 : fail("malformed method", begin);
  }
  line_.method = *known;
  const std::size_t after = line_.target.begin + line_.target.size;
  if (text_.substr(after).starts_with(" HTTP/1.1\r")) [[likely]] {  // version() judges all others
    head_.version_minor = 1;
    return {};
  }
  const std::string_view rest = text_.substr(after, text_.find('\r', after) - after);
  if (!rest.starts_with(' ')) return fail("malformed HTTP version", after);
  return version(rest.substr(1), after);
}

// RFC 9112 3.2: origin-form, absolute-form, and "*" for OPTIONS. Only CONNECT uses authority-form.
RequestFraming::Checked RequestFraming::target() {
  const std::string_view target = line_.target.in(base_);
  const std::size_t offset = line_.target.begin;
  if (line_.method == Method::kConnect) return connect_target(target);
  std::size_t mark = 0, end = 0;  // of the path, of the query
  while (mark < target.size() && is(target[mark], kPathChar)) ++mark;
  if (end = mark; end < target.size() && target[end] == '?') {
    while (end < target.size() && is(target[end], kQueryChar)) ++end;
  }
  if (end < target.size()) return fail("malformed request target", offset + end);
  if (target.front() == '/') {
    line_.host = HeadSlice{};
    line_.path = slice(target.substr(0, mark));
    line_.query = slice(target.substr(std::min(mark + 1, target.size())));
    return {};
  }
  if (target == "*" && line_.method == Method::kOptions) {
    line_.host = HeadSlice{};
    line_.path = slice(target);
    line_.query = slice(target.substr(1));
    return {};
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (equals_ignoring_case(target.substr(0, scheme.size()), scheme)) {
      line_.https_target = scheme.size() == 8;
      return absolute_target(target, scheme.size());
    }
  }
  return fail("malformed request target", offset);
}

// RFC 9112 3.2.3: host and port, both of them. host() checks their form.
RequestFraming::Checked RequestFraming::connect_target(std::string_view target) {
  const std::size_t offset = line_.target.begin;
  if (!connect_) return fail(ParseErrc::kUnknownMethod, "CONNECT is not implemented", offset);
  const std::size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == target.size() || target.back() == ']') {
    return fail("malformed request target", offset);
  }
  line_.host = slice(target);
  // The path slice uses the nearest slash, which is in the version: " HTTP/1.1".
  line_.path = slice(std::string_view(target.data() + target.size() + 5, 1));
  line_.query = slice(target.substr(target.size()));
  return {};
}

// RFC 9112 3.2.2: the authority of an absolute target replaces the Host field.
RequestFraming::Checked RequestFraming::absolute_target(std::string_view target, std::size_t authority) {
  const std::size_t end = std::min(target.find_first_of("/?", authority), target.size());
  const std::size_t mark = std::min(target.find('?', end), target.size());
  line_.host = slice(target.substr(authority, end - authority));
  if (line_.host.size == 0) return fail("request target without a host", line_.target.begin);
  // "http://example.org" requests "/": the path slice uses the nearest slash, which is in the scheme.
  line_.path = end == mark ? slice(target.substr(authority - 1, 1)) : slice(target.substr(end, mark - end));
  line_.query = slice(target.substr(std::min(mark + 1, target.size())));
  return {};
}

RequestFraming::Checked RequestFraming::fields() {
  for (Head::Field& field : head_.fields) {
    const std::string_view name = field.name.in(base_);
    const std::string_view value = trim_value(field);
    remember(name, value);
    if (name.size() == 4 && equals_ignoring_case(name, "Host")) host_.remember(value);
    if (name.size() == 6 && equals_ignoring_case(name, "Expect") && head_.version_minor >= 1)
      expectations(value);
    if (Checked checked = field_name(field); !checked) return checked;
  }
  if (bad_expectation_) return fail(ParseErrc::kUnknownExpectation, "unknown expectation", 0);
  connection();
  return {};
}

// RFC 9110 10.1.1: a list, of which "100-continue" is the only defined element. Empty elements are none (5.6.1).
void RequestFraming::expectations(std::string_view list) {
  while (!list.empty()) {
    const std::string_view one = take_item(list, ',');
    const bool known = equals_ignoring_case(one, "100-continue");
    line_.expects_continue = line_.expects_continue || known;
    bad_expectation_ = bad_expectation_ || (!known && !one.empty());
  }
}

// RFC 9112 3.2: exactly one Host in 1.1, at most one in 1.0, and well-formed, even where it is not used.
RequestFraming::Checked RequestFraming::host() {
  const std::optional<std::string_view>& named = host_.value;
  if (host_.twice) return fail("more than one Host", 0);
  if (!named && head_.version_minor >= 1) return fail("missing Host", 0);
  if (named && !is_host_and_port(*named)) return fail("malformed Host", offset_of(*named));
  if (line_.host.size > 0) {
    if (!is_host_and_port(line_.host.in(base_))) return fail("malformed request target", line_.host.begin);
    return {};
  }
  // RFC 9110 4.2.1: an http URI has a host. Only "*" names no resource.
  if (named && named->empty() && line_.target.in(base_) != "*") return fail("empty Host", offset_of(*named));
  if (named) line_.host = slice(*named);
  return {};
}

}  // namespace

std::expected<void, ParseError> frame_request(const char* base, RequestHead& head, bool connect) {
  head.expects_continue = head.https_target = false;
  return RequestFraming(base, head, connect).run();
}

}  // namespace tuza::http
