// Public header, part of <tuza/http.h>.
//
// WebSockets (RFC 6455). The server's side is on a request's connection:
//
//     router.handle("GET /echo", [](Request& req, ResponseWriter& res) {
//       auto socket = websocket::upgrade(req, res);
//       if (!socket) return;  // answered: it was no handshake, or one from a foreign page
//       while (auto message = socket->read()) {
//         if (!socket->write(*message)) return;
//       }
//     });
//
// The client's is on a connection of an http::Client:
//
//     http::Client client;  // one for the whole program
//     auto socket = websocket::dial(ctx, client, "wss://example.org/feed");
//     if (!socket) return std::unexpected(socket.error());  // "websocket dial wss://...: 403 Forbidden"
//     while (auto message = socket->read(ctx)) show(message->data);
//
// Pings are answered while something reads. A peer that is silent is pinged, and given up if it does not answer; this
// takes a timer, and no goroutine. When the server begins to shut down, its peers get 1001 by themselves, and read() ends
// when the peer has answered. When the connection is destroyed, the peer gets 1000, or 1011 if that is by an exception, and
// has close_timeout to answer; before that, a ping that is stuck may take as long.
//
// Errors: Errc::kClosed, the connection has been closed (peer_close() says with which code); Errc::kEndOfStream, without a
// close frame; Errc::kBadMessage, the peer has broken the protocol or a limit, and has got the code that says so;
// Errc::kTimeout, it does not answer pings, or reads nothing. After each of these all later calls fail; a text that is not
// UTF-8 is only not sent. The end of a context ends the call; what it means for the connection is said at each call.
//
// One goroutine may read while others write: writes are sent one after another. All of them must have ended when the
// connection is destroyed, and a server's before its handler returns.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {
class Client;
}

namespace tuza::http::websocket {

// Compression of messages (permessage-deflate, RFC 7692), if the peer agrees.
struct DeflateOptions {
  bool enabled = false;
  // Messages may refer to those before: smaller messages, and up to 192 KiB for each connection that compresses, against
  // the same memory with less use of it. A client may refuse it for either direction.
  bool context_takeover = true;
  int window_bits = 15;         // of each direction, 9 to 15: the window has 2^n bytes
  int level = 1;                // of zlib, 1 to 9
  std::size_t bytes_min = 256;  // smaller messages are sent as they are
};

struct Options {
  // What the server speaks, preferred first. The first one that the client offers is agreed on; none if there is none.
  std::vector<std::string> subprotocols{};
  // Pages that may connect, "https://example.com"; "*": any. Empty: those of the requested host. Clients that are no
  // browsers send no Origin, and are always accepted. Without this check, any page could use its visitors' cookies here.
  std::vector<std::string> origins{};
  // Of a message, also decompressed. Larger: the peer gets 1009.
  std::size_t message_bytes_max = 1 << 20;
  // How often a silent peer is pinged while something reads; 0: never.
  std::chrono::milliseconds ping_interval{30'000};
  // From a ping to the next byte of the peer.
  std::chrono::milliseconds pong_timeout{15'000};
  // From our close frame to that of the peer.
  std::chrono::milliseconds close_timeout{5'000};
  // From the beginning of the server's shutdown to 1001, unless the handler closes before: Request::until_shutdown() tells it.
  // What together with close_timeout is beyond ServerOptions::shutdown_timeout is cut off, without a close frame.
  std::chrono::milliseconds shutdown_grace{0};
  DeflateOptions deflate{};
};

struct DialOptions {
  // What the client speaks, preferred first. The server chooses one, or none.
  std::vector<std::string> subprotocols{};
  // Of the handshake: Authorization, Origin, Cookie.
  std::vector<std::pair<std::string, std::string>> headers{};
  // As those of the server's Options.
  std::size_t message_bytes_max = 1 << 20;
  std::chrono::milliseconds ping_interval{30'000};
  std::chrono::milliseconds pong_timeout{15'000};
  std::chrono::milliseconds close_timeout{5'000};
  // Of each wait of a write for a peer that does not read; then the connection is lost. 0: no limit.
  std::chrono::milliseconds write_timeout{30'000};
  // `enabled`: offers compression. Without context_takeover, or with smaller windows, a server that does not agree to that is
  // refused.
  DeflateOptions deflate{};
};

enum class Kind : std::uint8_t { kText = 1, kBinary = 2 };

struct Message {
  Kind kind = Kind::kText;
  std::string_view data;  // text is UTF-8
};

struct CloseStatus {
  int code = 0;  // 1005: the peer gave none
  std::string reason;
};

class Connection {
 public:
  class Impl;

  explicit Connection(std::unique_ptr<Impl> impl);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  // Closes the connection, if that has not been done, and waits for the peer's answer for at most close_timeout. Parks.
  ~Connection();

  // The next message, as a whole; its data is valid until the next call. Goes on after a context has ended. Those of the
  // request end also with timeout() and request_timeout; without a context it ends with the peer, and at shutdown. Parks.
  [[nodiscard]] Result<Message> read() { return read(Context::background()); }
  [[nodiscard]] Result<Message> read(const Context& ctx);

  // Sends a message. Waits for messages of other goroutines, and while the peer reads slower than this sends; the
  // write_timeout of the server, or of DialOptions, limits that. If the context ends while a part of the message has been sent, the connection is lost;
  // before that, it is as it was. Text that is not UTF-8 is not sent: Errc::kBadMessage. Parks.
  [[nodiscard]] Result<void> write(const Message& message) { return write(Context::background(), message); }
  [[nodiscard]] Result<void> write(const Context& ctx, const Message& message);
  [[nodiscard]] Result<void> write_text(std::string_view text) { return write({Kind::kText, text}); }
  [[nodiscard]] Result<void> write_text(const Context& ctx, std::string_view text) {
    return write(ctx, {Kind::kText, text});
  }
  [[nodiscard]] Result<void> write_binary(std::span<const std::byte> bytes) {
    return write_binary(Context::background(), bytes);
  }
  [[nodiscard]] Result<void> write_binary(const Context& ctx, std::span<const std::byte> bytes) {
    return write(ctx, {Kind::kBinary, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  }

  // Sends a close frame; nothing can be written afterwards. read() goes on until the peer has answered, for at most
  // close_timeout, which begins with this call, even if the end of `ctx` keeps the frame from being sent. Throws
  // std::invalid_argument unless `code` is one that may be sent (1000 to 1003, 1007 to 1014, 3000 to 4999; 1000: all is
  // done), and `reason` UTF-8 of at most 123 bytes. Any goroutine may call it. Parks.
  [[nodiscard]] Result<void> close(int code = 1000, std::string_view reason = {}) {
    return close(Context::background(), code, reason);
  }
  [[nodiscard]] Result<void> close(const Context& ctx, int code, std::string_view reason = {});

  // What the peer has closed with, once read() has failed; nullopt if it has not.
  [[nodiscard]] const std::optional<CloseStatus>& peer_close() const;
  // What was agreed on; empty: none.
  [[nodiscard]] std::string_view subprotocol() const;
  [[nodiscard]] bool compressed() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Whether `text` can be a text message. Thread-safe.
[[nodiscard]] bool is_utf8(std::string_view text);

// Accepts the handshake in `req`, and takes the connection over. Fields that have been set in `res`, cookies for instance,
// go with the answer. If it fails, `res` is the answer, and the handler returns: 426 for other requests and versions, 400
// for malformed ones, 403 for pages of other hosts, 503 (Errc::kClosed) once the server has begun to shut down. Throws
// std::invalid_argument for impossible options. Parks.
[[nodiscard]] Result<Connection> upgrade(Request& req, ResponseWriter& res, const Options& options = {});

// Asks the server of `url` ("ws://...", "wss://...", or http and https) for a WebSocket, as Client::send() sends a request: with
// the client's TLS, proxy, middleware, redirects, timeouts and limits of connections. `ctx` is of the handshake; the connection
// goes on after its end, and after that of `client`.
// Errors: those of Client::send(); a status (status_of()) if the server answers with another than 101; Errc::kBadMessage, if its
// answer is none to this handshake. Throws std::invalid_argument for impossible options. Parks.
[[nodiscard]] Result<Connection> dial(const Context& ctx, Client& client, std::string_view url,
                                      const DialOptions& options = {});

}  // namespace tuza::http::websocket
