#include <tuza/http/websocket/handshake.h>

#include <tuza/http/header_range.h>
#include <tuza/http/method.h>
#include <tuza/http/serve/field_lists.h>
#include <tuza/http/serve/only_header.h>
#include <tuza/http/wire/base64.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/digest.h>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tuza::http::websocket {
namespace {

// Without a port that is the scheme's own, so that "http://a" is an origin of the host "a:80".
std::string_view without_port(std::string_view host, std::string_view port) {
  return host.ends_with(port) ? host.substr(0, host.size() - port.size()) : host;
}

bool is_of_host(std::string_view origin, std::string_view host) {
  const std::size_t at = origin.find("://");
  if (at == std::string_view::npos) return false;  // "null", for instance
  const std::string_view scheme = origin.substr(0, at), rest = origin.substr(at + 3);
  if (rest.empty() || rest.find_first_of("/?#@") != std::string_view::npos) return false;
  const std::string_view port = equals_ignoring_case(scheme, "http")    ? ":80"
                                : equals_ignoring_case(scheme, "https") ? ":443"
                                                                        : "";
  return equals_ignoring_case(without_port(rest, port), without_port(host, port));
}

// The first one of ours that the client offers.
std::string_view choose_subprotocol(const Request& request, const Options& options) {
  for (const std::string& ours : options.subprotocols) {
    bool offered = false;
    each_element(request.headers(), "Sec-WebSocket-Protocol",
                 [&](std::string_view e) { offered = offered || e == ours; });
    if (offered) return ours;
  }
  return {};
}

}  // namespace

std::string accept_of(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const Sha1Digest digest = sha1_of(text);
  std::array<unsigned char, (std::tuple_size_v<Sha1Digest> + 2) / 3 * 4 + 1> encoded;
  const int size = EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(digest.size()));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(size)};
}

void check(const DeflateOptions& options) {
  if (options.window_bits < 9 || options.window_bits > 15)
    throw std::invalid_argument("deflate.window_bits is 9 to 15");
  if (options.level < 1 || options.level > 9) throw std::invalid_argument("deflate.level is 1 to 9");
}

bool allows_origin(const Options& options, std::string_view origin, std::string_view host) {
  if (options.origins.empty()) return is_of_host(origin, host);
  return std::ranges::any_of(options.origins, [&](const std::string& allowed) {
    return allowed == "*" || equals_ignoring_case(allowed, origin);
  });
}

std::expected<Agreement, Refusal> agree(const Request& request, const Options& options) {
  const auto refuse = [](int status, std::string_view text) {
    return std::unexpected(Refusal{status, text});
  };
  if (request.version_minor() < 1 || !lists(request.headers(), "Connection", "upgrade") ||
      !lists(request.headers(), "Upgrade", "websocket")) {
    return refuse(426, "a WebSocket is served here\n");
  }
  if (request.method() != Method::kGet) return refuse(400, "a WebSocket begins with GET\n");
  if (only_header(request.headers(), "Sec-WebSocket-Version") != "13")
    return refuse(426, "the version of WebSocket is 13\n");
  const std::optional<std::string_view> key = only_header(request.headers(), "Sec-WebSocket-Key");
  const std::optional<std::string> bytes = key ? decode_base64(*key) : std::nullopt;
  if (!bytes || bytes->size() != kKeyBytes) return refuse(400, "malformed Sec-WebSocket-Key\n");
  const bool has_origin = request.header("Origin").has_value();
  const std::optional<std::string_view> origin = only_header(request.headers(), "Origin");
  if (has_origin && (!origin || !allows_origin(options, *origin, request.host()))) {
    return refuse(403, "cross-origin request refused\n");
  }
  Agreement agreement{.accept = accept_of(*key), .subprotocol = choose_subprotocol(request, options)};
  if (options.deflate.enabled) {
    bool malformed = false;
    agreement.deflate =
        accept_deflate(joined(request.headers(), "Sec-WebSocket-Extensions"), options.deflate, malformed);
    if (malformed) return refuse(400, "malformed Sec-WebSocket-Extensions\n");
  }
  return agreement;
}

std::string answer(const Agreement& agreement, std::string_view extra) {
  std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: " +
      agreement.accept + "\r\n";
  if (!agreement.subprotocol.empty()) {
    head.append("Sec-WebSocket-Protocol: ").append(agreement.subprotocol).append("\r\n");
  }
  if (agreement.deflate) {
    head.append("Sec-WebSocket-Extensions: ").append(agreement.deflate->text()).append("\r\n");
  }
  return head.append(extra).append("\r\n");
}

}  // namespace tuza::http::websocket
