#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/message_framing.h>

namespace tuza::http {
namespace {

class ResponseFraming final : MessageFraming {
 public:
  ResponseFraming(const char* base, ResponseHead& head, Method asked)
      : MessageFraming(base, head), line_(head), asked_(asked) {}

  Checked run() {
    for (const auto step : {&ResponseFraming::lines, &ResponseFraming::status_line, &ResponseFraming::fields,
                            &ResponseFraming::body}) {
      if (Checked checked = (this->*step)(); !checked) return checked;
    }
    return {};
  }

 private:
  Checked lines() { return line_ends(); }
  Checked status_line();
  Checked fields();
  Checked body();
  [[nodiscard]] Checked none_allowed() const;

  StatusLine& line_;
  const Method asked_;
};

// RFC 9112 4: version SP three digits SP [reason] CRLF. Many servers leave out the second space where there is no reason;
// no parser takes anything else for it. Nothing stands in front: where empty lines were skipped, the end of a body that was
// longer than announced would pass unseen.
ResponseFraming::Checked ResponseFraming::status_line() {
  constexpr std::size_t kVersion = 8, kStatus = kVersion + 1, kReason = kStatus + 3;
  const std::string_view line = text_.substr(0, text_.find('\r'));
  if (line.size() < kReason || line[kVersion] != ' ') return fail("malformed status line", 0);
  if (Checked checked = version(line.substr(0, kVersion), 0); !checked) return checked;
  int status = 0;
  for (const char c : line.substr(kStatus, 3)) {
    if (c < '0' || c > '9') return fail("malformed status", kStatus);
    status = status * 10 + (c - '0');
  }
  if (status < 100) return fail("malformed status", kStatus);
  line_.status = status;
  std::string_view rest = line.substr(kReason);
  if (!rest.empty() && rest.front() != ' ') return fail("malformed status line", kReason);
  if (!rest.empty()) rest.remove_prefix(1);
  if (has_control_char(rest)) return fail("malformed reason", kReason);
  line_.reason = slice(rest);
  return {};
}

ResponseFraming::Checked ResponseFraming::fields() {
  for (Head::Field& field : head_.fields) {
    remember(field.name.in(base_), trim_value(field));
    if (Checked checked = field_name(field); !checked) return checked;
  }
  connection();
  return {};
}

// RFC 9112 6.3, in its order.
ResponseFraming::Checked ResponseFraming::body() {
  if (Checked checked = body_length(); !checked) return checked;
  const bool tunnel = asked_ == Method::kConnect && line_.status / 100 == 2;
  const bool never = line_.status / 100 == 1 || line_.status == 204;
  if (never && !tunnel) {
    if (Checked checked = none_allowed(); !checked) return checked;
  }
  line_.until_close = false;
  if (tunnel || never || line_.status == 304 || asked_ == Method::kHead) {
    head_.chunked = head_.has_content_length = false;
    head_.content_length = 0;
    return {};
  }
  line_.until_close = !head_.chunked && !head_.has_content_length;
  if (line_.until_close) head_.keep_alive = false;
  return {};
}

// RFC 9110 8.6 and RFC 9112 6.1: a server sends neither length nor coding with 1xx and 204. To a party that believes them,
// the bytes behind the head are a body; to us, they would be the next response.
ResponseFraming::Checked ResponseFraming::none_allowed() const {
  if (head_.chunked) return fail("Transfer-Encoding without a body", offset_of(*transfer_encoding_.value));
  if (head_.content_length > 0)
    return fail("Content-Length without a body", offset_of(*content_length_.value));
  return {};
}

}  // namespace

std::expected<void, ParseError> frame_response(const char* base, ResponseHead& head, Method asked) {
  return ResponseFraming(base, head, asked).run();
}

}  // namespace tuza::http
