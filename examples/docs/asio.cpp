// The code on docs/guide/asio.md.
#include <tuza/framework/asio_bridge.h>
#include <tuza/tuza.h>

#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/udp.hpp>

#include <array>
#include <string>

namespace asio_page {

//! [asio]
tuza::Result<std::string> first_bytes(const tuza::Context& ctx) {
  tuza::AsioContext asio;
  asio::ip::tcp::resolver resolver(asio.io());
  auto found = resolver.async_resolve("localhost", "7000", tuza::use_goroutine);
  if (!found) return std::unexpected(found.error());  // "asio: Host not found (authoritative)"
  asio::ip::tcp::socket socket(asio.io());
  auto connected = asio::async_connect(socket, *found, tuza::use_goroutine);
  if (!connected) return std::unexpected(connected.error());
  std::array<char, 4096> buffer;
  auto n = socket.async_read_some(asio::buffer(buffer), tuza::use_goroutine(ctx));
  if (!n) return std::unexpected(n.error());  // ctx.cause() if the context ended first
  return std::string(buffer.data(), *n);
}
//! [asio]

//! [udp]
tuza::Result<void> echo_datagrams(tuza::AsioContext& asio) {
  asio::ip::udp::socket socket(asio.io(), {asio::ip::udp::v4(), 7000});
  std::array<char, 1500> buffer;
  for (;;) {
    asio::ip::udp::endpoint peer;
    auto n = socket.async_receive_from(asio::buffer(buffer), peer, tuza::use_goroutine);
    if (!n) return std::unexpected(n.error());
    auto sent = socket.async_send_to(asio::buffer(buffer, *n), peer, tuza::use_goroutine);
    if (!sent) return std::unexpected(sent.error());
  }
}
//! [udp]

}  // namespace asio_page
