// Public header, part of <tuza/http.h>.
//
// The byte stream of a connection that its handler has taken over (ResponseWriter::hijack()).
//
//     auto stream = res.hijack(101);
//     if (!stream) return;  // the client has gone
//     (void)stream->write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
//     std::array<std::byte, 4096> buf;
//     while (auto n = stream->read(buf)) {
//       if (*n == 0 || !stream->write(std::span(buf).first(*n))) break;
//     }
//
// Valid until the handler returns, which ends the connection. One goroutine may read while another one writes; writes of
// several goroutines exclude each other. Nothing is buffered: write() sends at once.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace tuza {
class Context;
}

namespace tuza::http {

class Input;

class HijackedStream {
 public:
  // For the server.
  HijackedStream(net::Conn& conn, Input& received) : conn_(&conn), received_(&received) {}

  // At least one byte; 0 at the end of the stream. The first bytes are those that the server had already received behind
  // the request. Parks.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(const Context& ctx, std::span<std::byte> into);
  // Sends all of it, or fails after a part may have been sent. The server's write_timeout limits each wait for a client
  // that does not read. Parks.
  [[nodiscard]] Result<void> write(std::span<const std::byte> data) { return conn_->write_all(data); }
  [[nodiscard]] Result<void> write(std::string_view data) { return conn_->write_all(data); }
  [[nodiscard]] Result<void> write(const Context& ctx, std::span<const std::byte> data) {
    return conn_->write_all(ctx, data);
  }
  [[nodiscard]] Result<void> write(const Context& ctx, std::string_view data) {
    return conn_->write_all(ctx, data);
  }

  // For deadlines, close(), addresses. Reads of it miss what the server had already received.
  [[nodiscard]] net::Conn& conn() { return *conn_; }

  // For other parts of the server: bytes that have been received, and a buffer for more.
  [[nodiscard]] Input& received() { return *received_; }

 private:
  [[nodiscard]] std::size_t take_received(std::span<std::byte> into);

  net::Conn* conn_;
  Input* received_;
};

}  // namespace tuza::http
