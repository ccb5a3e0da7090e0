#include <tuza/http/request.h>

#include <tuza/http/serve/exchange.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

// Decodes the character of `text` at `i`, and moves `i` to the last byte of that character.
char decode_at(std::string_view text, std::size_t& i, bool plus_is_space) {
  if (is_percent_escape(text, i)) {
    i += 2;
    return unescaped(text, i - 2);
  }
  return plus_is_space && text[i] == '+' ? ' ' : text[i];
}

bool decodes_to(std::string_view text, std::string_view wanted) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i, ++size) {
    if (size == wanted.size() || decode_at(text, i, true) != wanted[size]) return false;
  }
  return size == wanted.size();
}

// `text` with its percent escapes decoded, and, in forms, "+" replaced by a space. The result is in the arena
// of `buffers`, unless there was nothing to replace. A "%" that begins no escape stays as it is.
std::string_view decode(ExchangeBuffers& buffers, std::string_view text, bool plus_is_space) {
  const bool plain = text.find('%') == std::string_view::npos &&
                     (!plus_is_space || text.find('+') == std::string_view::npos);
  if (plain) return text;
  auto* out = static_cast<char*>(buffers.arena().allocate(text.size(), 1));
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) out[size++] = decode_at(text, i, plus_is_space);
  return {out, size};
}

}  // namespace

Method Request::method() const { return exchange_.buffers().head.method; }
int Request::version_minor() const { return exchange_.buffers().head.version_minor; }

std::string_view Request::target() const {
  const ExchangeBuffers& buffers = exchange_.buffers();
  return buffers.head.target.in(buffers.head_base);
}
std::string_view Request::path() const {
  const ExchangeBuffers& buffers = exchange_.buffers();
  return buffers.head.path.in(buffers.head_base);
}
std::string_view Request::query() const {
  const ExchangeBuffers& buffers = exchange_.buffers();
  return buffers.head.query.in(buffers.head_base);
}
std::string_view Request::host() const {
  const ExchangeBuffers& buffers = exchange_.buffers();
  return buffers.head.host.in(buffers.head_base);
}

std::string_view Request::mount_path() const {
  const std::string_view rest = path();
  const std::size_t cut = exchange_.buffers().mounted_bytes;
  return {rest.data() - cut, cut};
}
std::string_view Request::pattern() const { return exchange_.buffers().pattern; }

std::optional<std::string_view> Request::path_value(std::string_view name) const {
  ExchangeBuffers& buffers = exchange_.buffers();
  for (ExchangeBuffers::PathValue& found : buffers.path_values) {
    if (found.name != name) continue;
    if (!std::exchange(found.decoded, true)) found.value = decode(buffers, found.value, false);
    return found.value;
  }
  return std::nullopt;
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  ExchangeBuffers& buffers = exchange_.buffers();
  std::string_view rest = query();
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(pair.size() + (pair.size() < rest.size() ? 1 : 0));
    const std::string_view key = pair.substr(0, pair.find('='));
    if (!decodes_to(key, name)) continue;
    return decode(buffers, pair.substr(key.size() < pair.size() ? key.size() + 1 : key.size()), true);
  }
  return std::nullopt;
}

std::optional<std::string_view> Request::header(std::string_view name) const { return headers().find(name); }

ReceivedHeaders Request::headers() const {
  return ReceivedHeaders(exchange_.buffers().head, exchange_.buffers().head_base);
}

HeaderLines Request::trailers() const {
  return HeaderLines(exchange_.body_ended() ? exchange_.buffers().chunks.trailers() : std::string_view());
}

std::optional<std::string_view> Request::trailer(std::string_view name) const {
  return trailers().find(name);
}

std::optional<std::uint64_t> Request::content_length() const {
  const RequestHead& head = exchange_.buffers().head;
  if (head.chunked) return std::nullopt;
  return head.content_length;
}

Result<std::size_t> Request::read_body(std::span<std::byte> into) {
  return exchange_.take_body(into, nullptr);
}
Result<std::size_t> Request::read_body(const Context& ctx, std::span<std::byte> into) {
  return exchange_.take_body(into, &ctx);
}
Result<std::string_view> Request::body() { return exchange_.pull_body(nullptr); }
Result<std::string_view> Request::body(const Context& ctx) { return exchange_.pull_body(&ctx); }
const Context& Request::context() const { return exchange_.context(); }
const Context& Request::until_shutdown() const { return exchange_.until_shutdown(); }
Result<net::Endpoint> Request::remote_endpoint() const {
  const auto& client = exchange_.buffers().client;
  return client ? client->endpoint : exchange_.remote_endpoint();
}
std::optional<net::TlsInfo> Request::tls_info() const { return exchange_.tls_info(); }
std::string_view Request::remote() const {
  const auto& client = exchange_.buffers().client;
  return client ? client->text : exchange_.remote();
}
void detail::no_such_path() { throw StatusError(404); }
void detail::malformed_value(std::string_view what, std::string_view name) {
  throw StatusError(400, "malformed " + std::string(what) + " " + std::string(name));
}
void detail::no_such_path_value(std::string_view name) {
  throw std::logic_error("the route's pattern has no {" + std::string(name) + "}");
}

void* Request::allocate(std::size_t bytes, std::size_t alignment) {
  return exchange_.buffers().arena().allocate(bytes, alignment);
}

}  // namespace tuza::http
