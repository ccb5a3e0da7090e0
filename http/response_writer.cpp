#include <tuza/http/response_writer.h>

#include <tuza/http/serve/exchange.h>
#include <tuza/http/status.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace tuza::http {
namespace {

// Browsers take "\\" for "/", so that "/\\host" would name another server.
std::string as_uri(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF", kEscaped = "\"<>\\^`{|}";
  std::string uri;
  uri.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && !kEscaped.contains(c)) {
      uri += c;
    } else {
      uri.append("%").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  return uri;
}

}  // namespace

void ResponseWriter::status(int code) { exchange_.set_status(code); }
void ResponseWriter::set_header(std::string_view name, std::string_view value) {
  exchange_.set_header(name, value);
}
void ResponseWriter::add_header(std::string_view name, std::string_view value) {
  exchange_.add_header(name, value);
}
void ResponseWriter::add_trailer(std::string_view name, std::string_view value) {
  exchange_.add_trailer(name, value);
}
Result<void> ResponseWriter::early_hints(std::string_view link) { return exchange_.early_hints(link); }
void ResponseWriter::remove_header(std::string_view name) { exchange_.remove_header(name); }
void ResponseWriter::set_cookie(const Cookie& cookie) { add_header("Set-Cookie", to_set_cookie(cookie)); }
void ResponseWriter::delete_cookie(Cookie like) {
  like.value.clear();
  like.max_age = std::chrono::seconds(0);
  like.expires = std::chrono::sys_seconds();  // for what does not know Max-Age
  // Browsers refuse to touch these without it, and it does no harm elsewhere.
  if (like.name.starts_with("__") || like.partitioned || like.same_site == SameSite::kNone)
    like.secure = true;
  set_cookie(like);
}
std::optional<std::string_view> ResponseWriter::header(std::string_view name) const {
  return exchange_.response_header(name);
}
HeaderLines ResponseWriter::headers() const { return HeaderLines(exchange_.buffers().extra); }
void ResponseWriter::close() { exchange_.close_after_response(); }
void ResponseWriter::send(std::string_view content_type, std::string_view body) {
  exchange_.send_whole(content_type, body);
}

void ResponseWriter::error(int code) { error(code, std::string(reason_phrase(code)) + "\n"); }
void ResponseWriter::error(int code, std::string_view text) {
  if (!head_sent()) exchange_.drop_prepared_body();
  status(code);
  this->text(text);
}

void ResponseWriter::redirect(std::string_view location, int code) {
  if (code != 301 && code != 302 && code != 303 && code != 307 && code != 308) {
    throw std::invalid_argument("redirect(): not a status of a redirect: " + std::to_string(code));
  }
  set_header("Location", as_uri(location));
  error(code);
}

Result<void> ResponseWriter::write(std::string_view data) { return exchange_.write_body(data, nullptr); }
Result<void> ResponseWriter::write(const Context& ctx, std::string_view data) {
  return exchange_.write_body(data, &ctx);
}
Result<void> ResponseWriter::write_file(const net::FileSlice& slice) {
  return exchange_.write_file(slice, nullptr);
}
Result<void> ResponseWriter::write_file(const Context& ctx, const net::FileSlice& slice) {
  return exchange_.write_file(slice, &ctx);
}
Result<void> ResponseWriter::flush() { return exchange_.flush_response(nullptr); }
Result<void> ResponseWriter::flush(const Context& ctx) { return exchange_.flush_response(&ctx); }
bool ResponseWriter::enable_full_duplex() { return exchange_.separate_directions(); }
Result<HijackedStream> ResponseWriter::hijack(int status) { return exchange_.hijack(status); }
bool ResponseWriter::head_sent() const { return exchange_.begun(); }
int ResponseWriter::status_code() const { return exchange_.status_code(); }
std::uint64_t ResponseWriter::bytes_written() const { return exchange_.bytes_written(); }

}  // namespace tuza::http
