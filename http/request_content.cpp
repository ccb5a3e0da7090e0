// The calls of Request that read a body as a form or as JSON, and the credentials and cookies.
#include <tuza/http/request.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/only_header.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tuza::http {
namespace {

// "application/json; charset=utf-8" -> "application/json"
std::string_view media_type(const Request& req) {
  const std::string_view field = req.header("Content-Type").value_or("");
  return trim(field.substr(0, field.find(';')));
}

bool is_json(std::string_view type) {
  constexpr std::string_view kSuffix = "+json";
  if (equals_ignoring_case(type, "application/json")) return true;
  return type.size() > kSuffix.size() &&
         equals_ignoring_case(type.substr(type.size() - kSuffix.size()), kSuffix);
}

}  // namespace

Values Request::query_values(std::size_t count_max) const {
  std::optional<Values> values = Values::parse(query(), count_max);
  if (!values) throw StatusError(400, "too many query parameters");
  return *std::move(values);
}

std::optional<std::string_view> Request::cookie(std::string_view name) const {
  for (const HeaderField cookie : cookies()) {
    if (cookie.name == name) return cookie.value;
  }
  return std::nullopt;
}

std::optional<BasicCredentials> Request::basic_auth() const {
  const auto field = only_header(*this, "Authorization");
  return field ? parse_basic_auth(*field) : std::nullopt;
}
std::optional<std::string_view> Request::bearer_token() const {
  const auto field = only_header(*this, "Authorization");
  return field ? parse_bearer_token(*field) : std::nullopt;
}

// As the server would answer.
void Request::refuse_unreadable() {
  const int status = std::max(exchange_.status_code(), 400);
  if (status == 503 && !exchange_.begun()) exchange_.set_header("Retry-After", "1");
  throw StatusError(status);
}

std::string Request::limited_body(std::size_t bytes_max) {
  const std::optional<std::uint64_t> length = content_length();
  if (length && *length > bytes_max) throw StatusError(413);
  std::string body = exchange_.buffers().pulled;  // by body(), which has read it
  if (body.size() > bytes_max) throw StatusError(413);
  std::array<std::byte, 8192> piece;
  for (;;) {
    const Result<std::size_t> n = read_body(piece);
    if (!n) refuse_unreadable();
    if (*n == 0) return body;
    if (*n > bytes_max - body.size()) throw StatusError(413);
    if (!exchange_.hold_body(body.size() + *n)) refuse_unreadable();
    body.append(reinterpret_cast<const char*>(piece.data()), *n);
  }
}

Values Request::form(std::size_t bytes_max, std::size_t count_max) {
  if (!equals_ignoring_case(media_type(*this), "application/x-www-form-urlencoded")) {
    throw StatusError(415, "the body must be application/x-www-form-urlencoded");
  }
  std::optional<Values> values = Values::parse(limited_body(bytes_max), count_max);
  if (!values) throw StatusError(400, "too many fields in the form");
  return *std::move(values);
}

std::string Request::json_text(const JsonLimits& limits) {
  if (!is_json(media_type(*this))) throw StatusError(415, "the body must be application/json");
  std::string text = limited_body(limits.bytes_max);
  if (const std::optional<std::size_t> byte = json_too_deep(text, limits.depth_max)) {
    throw StatusError(400, "the JSON is nested too deeply at byte " + std::to_string(*byte));
  }
  return text;
}

// In a handler of this exception. A conversion checks what it gets, too, and throws std::invalid_argument for instance; what else
// it throws is not the client's fault.
void Request::not_the_json(const std::exception& error) {
  const bool is_clients = dynamic_cast<const JsonError*>(&error) != nullptr ||
                          dynamic_cast<const std::logic_error*>(&error) != nullptr;
  if (is_clients) throw StatusError(400, error.what());
  throw;
}

}  // namespace tuza::http
