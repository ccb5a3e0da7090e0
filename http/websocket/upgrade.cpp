// websocket::upgrade(): from a request to a connection.
#include <tuza/http/serve/exchange.h>
#include <tuza/http/websocket/connection.h>
#include <tuza/http/websocket/handshake.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/origin.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::websocket {
namespace {

void check(const Options& options) {
  check(options.deflate);
  if (std::ranges::any_of(options.subprotocols, &std::string::empty))
    throw std::invalid_argument("a subprotocol has a name");
  for (const std::string& origin : options.origins) {
    if (origin != "*" && origin != "null" && !is_origin(lower_case(origin)))
      throw std::invalid_argument("no browser sends the origin \"" + origin + '"');
  }
}

void refuse(Request& req, ResponseWriter& res, const Refusal& refusal) {
  if (refusal.status == 426) {
    res.set_header("Sec-WebSocket-Version", "13");
    req.exchange().offer_upgrade("websocket");
  }
  // A proxy may take the connection for a tunnel all the same: what follows would be a request that it has not seen.
  res.close();
  res.error(refusal.status, refusal.text);
}

}  // namespace

Result<Connection> upgrade(Request& req, ResponseWriter& res, const Options& options) {
  check(options);
  const auto agreement = agree(req, options);
  if (!agreement) {
    refuse(req, res, agreement.error());
    return std::unexpected(
        Error(Errc::kBadMessage, "websocket upgrade", std::string(agreement.error().text)));
  }
  const Context shutdown = req.exchange().server_shutdown();
  if (shutdown.done()) {  // 1001 would follow at once; a client that gets 503 asks elsewhere
    refuse(req, res, {503, {}});
    return std::unexpected(Error(Errc::kClosed, "websocket upgrade", "the server shuts down"));
  }
  const std::string head = answer(*agreement, req.exchange().buffers().extra);
  Result<HijackedStream> stream = res.hijack(101);
  if (!stream) {
    const bool has_body = stream.error().is(Errc::kBadMessage);
    if (!stream.error().closed()) {
      refuse(req, res, has_body ? Refusal{400, "a handshake has no body"} : Refusal{501, {}});
    }
    return std::unexpected(stream.error());
  }
  if (Result<void> sent = stream->write(head); !sent) return std::unexpected(sent.error());
  auto impl = std::make_unique<Connection::Impl>(Role::kServer, *stream, *agreement, options,
                                                 req.exchange().body_budget());
  impl->begin(shutdown);
  return Connection(std::move(impl));
}

}  // namespace tuza::http::websocket
