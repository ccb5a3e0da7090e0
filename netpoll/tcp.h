// Public header, part of <tuza/net.h>.
//
// TCP and Unix-domain streams: listener, connection, dialer. Blocking calls that block only the goroutine.
//
//     auto listener = tuza::net::listen("tcp", "127.0.0.1:7000").value();
//     while (auto conn = listener.accept()) {
//       tuza::go([conn = std::move(*conn)]() mutable { serve(conn); });
//     }
//
// Ownership: Conn and Listener own their socket and close it on destruction. They can be moved while no call
// uses them.
//
// Thread-safe: any goroutine may call any function at any time. Reads of one connection exclude each other,
// and so do writes, so that a write_all() is not interleaved with another. close() may be called while other
// goroutines read or write: their calls return Errc::kClosed. Destroying the object during a call is not
// allowed.
//
// Errors are values: Errc::kClosed, Errc::kTimeout, or the system's error. SIGPIPE is never raised.
//
// A call with a Context returns the context's cause when the context ends, at once if the context has already
// ended. The connection stays usable; of a write_all() some bytes may have been sent. The end of the context
// does not end the wait for another goroutine that is reading (writing) the same connection.
//
// A Conn may carry TLS (netpoll/tls.h); everything here also holds for TLS, with these differences: the first
// call that reads or writes performs the handshake. The peer must end the stream with a TLS close; otherwise
// read() returns Errc::kEndOfStream, since an attacker may have truncated the stream. close_write() parks if
// it has to wait. close() while another goroutine writes, or is decrypting data it has read, may truncate the
// stream.
#pragma once

#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/result.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct iovec;

namespace tuza {
class Context;
}

namespace tuza::net {

class Descriptor;
class LazyBuffer;
class TlsServer;
class Transport;
class UnixSocketFile;
struct TlsInfo;

namespace detail {
struct Dispose {
  void operator()(Descriptor* descriptor) const;
  void operator()(Transport* transport) const;
  void operator()(UnixSocketFile* file) const;
};
using DescriptorOwner = std::unique_ptr<Descriptor, Dispose>;
using TransportOwner = std::unique_ptr<Transport, Dispose>;
using UnixSocketFileOwner = std::unique_ptr<UnixSocketFile, Dispose>;
}  // namespace detail

using TimePoint = std::chrono::steady_clock::time_point;
// No deadline.
inline constexpr TimePoint kNoDeadline = TimePoint::max();

// `timeout` from now, for calls that take a deadline. A timeout beyond the clock's range is clamped.
template <class Rep, class Period>
[[nodiscard]] TimePoint time_after_now(const std::chrono::duration<Rep, Period>& timeout) {
  const TimePoint now = std::chrono::steady_clock::now();
  return TimePoint(
      std::chrono::nanoseconds(rt::time_after(now.time_since_epoch().count(), rt::whole_ns(timeout))));
}

class Conn {
 public:
  // `transport`, if not null, is the layer between the calls here and the socket
  // (netpoll/socket/transport.h).
  explicit Conn(detail::DescriptorOwner descriptor, detail::TransportOwner transport = nullptr)
      : descriptor_(std::move(descriptor)), transport_(std::move(transport)) {}
  Conn(Conn&&) = default;
  Conn& operator=(Conn&& other) noexcept {
    transport_ = std::move(other.transport_);  // first: the old transport says goodbye over the old socket
    descriptor_ = std::move(other.descriptor_);
    return *this;
  }

  // Waits for at least one byte; returns the number of bytes read, 0 at the end of the stream. Parks.
  Result<std::size_t> read(std::span<std::byte> into);
  Result<std::size_t> read(const Context& ctx, std::span<std::byte> into);
  Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  Result<std::size_t> read(const Context& ctx, std::span<char> into) {
    return read(ctx, std::as_writable_bytes(into));
  }
  // Like read(), but takes the buffer only when there is data to read: an idle connection needs no buffer.
  Result<std::size_t> read(LazyBuffer& into);
  Result<std::size_t> read(const Context& ctx, LazyBuffer& into);
  // Fills `into`; Errc::kEndOfStream if the stream ends first. Parks.
  Result<void> read_full(std::span<std::byte> into);
  Result<void> read_full(const Context& ctx, std::span<std::byte> into);

  // Sends all data, or returns an error after a part may have been sent. Parks.
  Result<void> write_all(std::span<const std::byte> data);
  Result<void> write_all(std::string_view text) { return write_all(std::as_bytes(std::span(text))); }
  Result<void> write_all(const Context& ctx, std::span<const std::byte> data);
  Result<void> write_all(const Context& ctx, std::string_view text) {
    return write_all(ctx, std::as_bytes(std::span(text)));
  }
  // Like write_all(), for the last data of the stream: over TLS the close notification goes with it in one
  // system call. No more can be written afterwards; reading continues to work. close() or close_write() must
  // follow. Parks.
  Result<void> write_last(std::string_view text);
  // Writes several pieces with as few system calls as possible. Changes the elements of `pieces`. Parks.
  Result<void> writev_all(std::span<struct iovec> pieces);
  Result<void> writev_all(const Context& ctx, std::span<struct iovec> pieces);

  // From this point in time on, calls of that direction fail with Errc::kTimeout, calls that already wait
  // included. The deadline stays until it is set again; kNoDeadline removes it. Cheap: two memory operations,
  // unless the new deadline is earlier than the old one. Does not park.
  void set_read_deadline(TimePoint when);
  void set_write_deadline(TimePoint when);
  void set_deadline(TimePoint when);

  // Limits each wait of a write for the peer to accept data. 0 means no limit, and is the default. Costs
  // nothing while writes do not wait. Replaces a write deadline.
  void set_write_timeout(rt::AnyDuration timeout);

  // Ends the stream to the peer; reading continues to work.
  Result<void> close_write();
  // Closes the connection; waiting calls return Errc::kClosed. May be called repeatedly. Does not park.
  void close();
  // Makes the following close abort the connection: the peer sees a reset, and nothing lingers. Unix sockets
  // have no reset: they close normally, except that TLS sends no close notification.
  Result<void> set_linger_zero();

  Result<void> set_no_delay(bool on);  // initially on; TCP only
  Result<void> set_keep_alive(bool on);

  // TCP only; EAFNOSUPPORT otherwise.
  Result<Endpoint> local_endpoint() const;
  Result<Endpoint> remote_endpoint() const;
  // For all sockets, as text: "127.0.0.1:80", "unix:/run/app.sock"; "unix:" for a peer without a name, such
  // as a dialer.
  Result<std::string> local_address() const;
  Result<std::string> remote_address() const;

  // TLS: performs the handshake now if it has not happened yet; if it has failed, returns the same error
  // again. Otherwise does nothing. Parks.
  Result<void> handshake();
  Result<void> handshake(const Context& ctx);
  // nullopt if the connection is not TLS, or before the handshake.
  [[nodiscard]] std::optional<TlsInfo> tls_info() const;

  // For higher layers and tests that need more than this interface.
  [[nodiscard]] Descriptor& descriptor() { return *descriptor_; }

 private:
  friend class Server;     // farewell()
  friend class TlsClient;  // inserts its transport
  // Tells the peer that the stream ends, if closing the socket does not tell it. Parks if it has to wait.
  void farewell();

  detail::DescriptorOwner descriptor_;
  detail::TransportOwner transport_;  // null: none, the usual case. Destroyed before the descriptor
};

struct ListenOptions {
  int backlog = 4096;       // connections that wait to be accepted; the system may impose a lower limit
  bool reuse_port = false;  // several sockets share one port; each gets a part of the connections
};

class Listener {
 public:
  Listener(detail::DescriptorOwner descriptor, Endpoint endpoint, std::string address);
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // Takes over a socket that already listens, for example from systemd (netpoll/inherited.h). Owns the socket
  // from then on, even on an error: not a TCP or Unix stream socket, or not listening. When this listener is
  // closed, the socket continues to listen for other processes that hold it, and the file of a Unix socket
  // stays.
  static Result<Listener> adopt(int fd);

  // Returns the next connection. Parks. An error that concerns a single connection is not reported: accept()
  // waits for the next connection. Out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM): the
  // connection stays in the backlog; see serve() for how to handle that.
  Result<Conn> accept();
  Result<Conn> accept(const Context& ctx);
  // Ends waiting and later accept() calls with Errc::kClosed, and removes the file of a Unix socket. Does not
  // park.
  void close();

  // Connections accepted from now on use TLS. Call it only before the first accept().
  void use_tls(std::shared_ptr<TlsServer> tls);

  // The listening address, with the system-chosen port if the port was 0. TCP only: otherwise 0.0.0.0:0.
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // The same as text, for all sockets: "127.0.0.1:80", "unix:/run/app.sock".
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  friend class SpareDescriptor;
  friend Result<Listener> listen_unix(std::string_view path, int backlog);
  Result<Conn> accept_within(const Context* ctx);
  detail::DescriptorOwner descriptor_;
  Endpoint endpoint_;
  std::string address_;
  detail::UnixSocketFileOwner file_;  // null: no file, or not ours to remove
  std::shared_ptr<TlsServer> tls_;
  bool adopted_ = false;  // other processes may hold the socket, too
};

// `network` is "tcp", "tcp4", "tcp6" or "unix".
//
// TCP: ":80" listens on every address; so does "[::]:80", for both IPv4 and IPv6 with "tcp". Parks if the
// host is a name: see resolve().
//
// Unix: the address is a path of at most 107 bytes. Write permission on the file allows connecting; the umask
// applies. An existing socket file is replaced if nobody listens on it, as after a crash; if a process
// listens on it, or the file is not a socket, the error is EADDRINUSE.
//
// Goroutines only.
Result<Listener> listen(std::string_view network, std::string_view address,
                        const ListenOptions& options = {});

// The same with a single text: "unix:/run/app.sock", or a TCP address.
Result<Listener> listen(std::string_view address, const ListenOptions& options = {});

// Connects; `network` as above. Gives up at `deadline`. The deadline does not limit the time of the resolver
// if the host is a name. Parks. Goroutines only.
Result<Conn> dial(std::string_view network, std::string_view address, TimePoint deadline = kNoDeadline);
// The same, but gives up when `ctx` ends; the end of `ctx` does not interrupt the resolver either.
Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address);

}  // namespace tuza::net
