#include <tuza/http/websocket/client_handshake.h>

#include <tuza/http/serve/field_lists.h>
#include <tuza/http/serve/only_header.h>
#include <tuza/http/websocket/deflate_answer.h>
#include <tuza/http/wire/base64.h>
#include <tuza/http/wire/chars.h>

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tuza::http::websocket {
namespace {

constexpr std::string_view kOurs = "Sec-WebSocket-";

void add_headers(ClientRequest& request, const DialOptions& options) {
  for (const auto& [name, value] : options.headers) {
    if (equals_ignoring_case(std::string_view(name).substr(0, kOurs.size()), kOurs))
      throw std::invalid_argument(name + " is set by the handshake");
    request.add_header(name, value);
  }
}

}  // namespace

std::optional<std::string> make_key() {
  std::array<char, kKeyBytes> bytes;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1)
    return std::nullopt;
  return encode_base64({bytes.data(), bytes.size()});
}

void ask(ClientRequest& request, std::string_view key, const DialOptions& options) {
  add_headers(request, options);
  request.set_upgrade("websocket");
  request.set_header("Sec-WebSocket-Version", "13").set_header("Sec-WebSocket-Key", key);
  std::string subprotocols;
  for (const std::string& one : options.subprotocols)
    subprotocols.append(subprotocols.empty() ? "" : ", ").append(one);
  if (!subprotocols.empty()) request.set_header("Sec-WebSocket-Protocol", subprotocols);
  if (options.deflate.enabled)
    request.set_header("Sec-WebSocket-Extensions", deflate_offer_of(options.deflate));
}

std::expected<Agreement, std::string_view> read_answer(ReceivedHeaders headers, std::string_view key,
                                                       const DialOptions& options) {
  if (!lists(headers, "Connection", "upgrade") || !lists(headers, "Upgrade", "websocket"))
    return std::unexpected("an upgrade to something else");
  if (only_header(headers, "Sec-WebSocket-Accept") != accept_of(key))
    return std::unexpected("the Sec-WebSocket-Accept of another key");
  Agreement agreement;
  if (const std::string chosen = joined(headers, "Sec-WebSocket-Protocol"); !chosen.empty()) {
    const auto offered = std::ranges::find(options.subprotocols, chosen);
    if (offered == options.subprotocols.end()) return std::unexpected("a subprotocol that was not offered");
    agreement.subprotocol = *offered;
  }
  if (const std::string answer = joined(headers, "Sec-WebSocket-Extensions"); !answer.empty()) {
    if (options.deflate.enabled) agreement.deflate = read_deflate_answer(answer, options.deflate);
    if (!agreement.deflate) return std::unexpected("an extension that was not offered in this way");
  }
  return agreement;
}

}  // namespace tuza::http::websocket
