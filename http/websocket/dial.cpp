// websocket::dial(): from a URL to a connection.
#include <tuza/http/client.h>
#include <tuza/http/client/exchange.h>
#include <tuza/http/client/redirect.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/status.h>
#include <tuza/http/websocket/client_handshake.h>
#include <tuza/http/websocket/connection.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/errorf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::websocket {
namespace {

// Of what a server says when it declines; more is not for a message.
constexpr std::size_t kWordsMax = 200;

void check(const DialOptions& options) {
  check(options.deflate);
  const bool tokens = std::ranges::all_of(options.subprotocols, [](const std::string& name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) { return is(c, kTokenChar); });
  });
  if (!tokens) throw std::invalid_argument("the name of a subprotocol is a token");
}

bool is_http(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  return equals_ignoring_case(scheme, "http") || equals_ignoring_case(scheme, "https");
}

std::unexpected<Error> bad_answer(std::string_view url, std::string_view why) {
  return std::unexpected(
      Error(Errc::kBadMessage, "websocket dial", std::string(url).append(": ").append(why)));
}

// With the first line of the server's words about it, as far as it has come with the head.
Error declined(ClientResponse& response, std::string_view url) {
  Error error(status_code(response.status()), "websocket dial", std::string(url));
  if (!response.header("Content-Type").value_or("").starts_with("text/plain")) return error;
  std::array<char, kWordsMax> piece;
  const std::size_t n = response.exchange().read_now(std::as_writable_bytes(std::span(piece))).value_or(0);
  const std::string_view said(piece.data(), n);
  const std::string_view words = trim(said.substr(0, said.find_first_of("\r\n")));
  if (words.empty() || words == reason_phrase(response.status())) return error;
  std::string printable;
  detail::append_log_escaped(printable, words);
  return errorf("{}: {}", error, printable);
}

Options of_connection(const DialOptions& options) {
  return {.message_bytes_max = options.message_bytes_max,
          .ping_interval = options.ping_interval,
          .pong_timeout = options.pong_timeout,
          .close_timeout = options.close_timeout,
          .deflate = options.deflate};
}

}  // namespace

Result<Connection> dial(const Context& ctx, Client& client, std::string_view url,
                        const DialOptions& options) {
  check(options);
  const std::string address = without_upgrade(url);
  if (!is_http(address))
    return std::unexpected(Error(Errc::kBadAddress, "websocket dial", "neither ws:// nor wss://"));
  const std::optional<std::string> key = make_key();
  if (!key) return std::unexpected(Error(Errc::kOther, "websocket dial", "no random numbers"));
  ClientRequest request(Method::kGet, address);
  ask(request, *key, options);
  Result<ClientResponse> response = client.send(ctx, request);
  if (!response) return std::unexpected(errorf("websocket dial: {}", response.error()));
  if (response->status() != 101) return std::unexpected(declined(*response, url));
  const auto agreement = read_answer(response->headers(), *key, options);
  if (!agreement) return bad_answer(url, agreement.error());
  HijackedStream stream = response->hijack().value();
  stream.conn().set_write_timeout(options.write_timeout);
  auto impl =
      std::make_unique<Connection::Impl>(*std::move(response), stream, *agreement, of_connection(options));
  impl->begin(Context::background());
  return Connection(std::move(impl));
}

}  // namespace tuza::http::websocket
