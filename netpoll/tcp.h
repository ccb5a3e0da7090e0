// Public header, part of <tuza/net.h>.
//
// TCP and Unix-domain streams: listener, connection, dialer. Blocking calls that block only the goroutine.
//
//     auto listener = tuza::net::listen("tcp", "127.0.0.1:7000").value();
//     while (auto conn = listener.accept()) {
//       tuza::go([conn = std::move(*conn)]() mutable { serve(conn); });
//     }
//
// Ownership: Conn and Listener own their socket and close it when they are destroyed. They can be moved while
// nobody uses them.
//
// Thread-safe: any goroutine may call any function at any time. Reads of one connection exclude each other,
// and so do writes, so a write_all() is not torn apart by another. close() may be called while others read
// or write: they return with Errc::kClosed. What must not happen is destruction during a call.
//
// Errors are values: Errc::kClosed, Errc::kTimeout, or what the system says. There is no SIGPIPE.
//
// A call that is given a Context returns the context's cause when that ends, at once if it has ended before.
// The connection stays as it is; of write_all() some bytes may have been sent. Only the waiting for others
// who read (write) at the same time is not ended.
//
// A Conn may carry TLS (netpoll/tls.h); everything here holds for it, too. The differences: the first call
// that reads or writes shakes hands; the peer must end the stream by TLS' own means, else read() says
// Errc::kEndOfStream, since somebody may have cut it off; close_write() parks if it has to wait; and close()
// while others write, or just decrypt what they have read, may cut the stream off.
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

// `timeout` from now, for calls that take a deadline. Long ones are cut to the clock's end of time.
template <class Rep, class Period>
[[nodiscard]] TimePoint time_after_now(const std::chrono::duration<Rep, Period>& timeout) {
  const TimePoint now = std::chrono::steady_clock::now();
  return TimePoint(
      std::chrono::nanoseconds(rt::time_after(now.time_since_epoch().count(), rt::whole_ns(timeout))));
}

class Conn {
 public:
  // `transport`, if there is one, is between the calls here and the socket (netpoll/socket/transport.h).
  explicit Conn(detail::DescriptorOwner descriptor, detail::TransportOwner transport = nullptr)
      : descriptor_(std::move(descriptor)), transport_(std::move(transport)) {}
  Conn(Conn&&) = default;
  Conn& operator=(Conn&& other) noexcept {
    transport_ = std::move(other.transport_);  // first: the old one takes its leave over the old socket
    descriptor_ = std::move(other.descriptor_);
    return *this;
  }

  // Waits for at least one byte; returns how many came, 0 at the end of the stream. Parks.
  Result<std::size_t> read(std::span<std::byte> into);
  Result<std::size_t> read(const Context& ctx, std::span<std::byte> into);
  Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  Result<std::size_t> read(const Context& ctx, std::span<char> into) {
    return read(ctx, std::as_writable_bytes(into));
  }
  // As read(), taking the buffer only when there is something to read: an idle connection needs none.
  Result<std::size_t> read(LazyBuffer& into);
  Result<std::size_t> read(const Context& ctx, LazyBuffer& into);
  // Fills `into`; Errc::kEndOfStream if the stream ends before. Parks.
  Result<void> read_full(std::span<std::byte> into);
  Result<void> read_full(const Context& ctx, std::span<std::byte> into);

  // Sends everything, or returns an error after some of it may have been sent. Parks.
  Result<void> write_all(std::span<const std::byte> data);
  Result<void> write_all(std::string_view text) { return write_all(std::as_bytes(std::span(text))); }
  Result<void> write_all(const Context& ctx, std::span<const std::byte> data);
  Result<void> write_all(const Context& ctx, std::string_view text) {
    return write_all(ctx, std::as_bytes(std::span(text)));
  }
  // As write_all(), for the last that is written: over TLS the end is said with it, in one system call. No
  // more can be written then; reading goes on. close() or close_write() must follow. Parks.
  Result<void> write_last(std::string_view text);
  // Several pieces with as few system calls as possible. Changes the elements of `pieces`.
  Result<void> writev_all(std::span<struct iovec> pieces);
  Result<void> writev_all(const Context& ctx, std::span<struct iovec> pieces);

  // From this point of time on, calls of that direction fail with Errc::kTimeout, also those that wait
  // already. Stays until set again; kNoDeadline takes it away. Cheap: two memory operations, unless it is
  // earlier than before. Does not park.
  void set_read_deadline(TimePoint when);
  void set_write_deadline(TimePoint when);
  void set_deadline(TimePoint when);

  // A limit for each time a write has to wait for the peer to take something: 0 is none, and the default. It
  // costs nothing while writes do not wait. Replaces a write deadline.
  void set_write_timeout(rt::AnyDuration timeout);

  // Ends the stream to the peer; reading goes on.
  Result<void> close_write();
  // Ends everything; calls that wait return Errc::kClosed. May be called again. Does not park.
  void close();
  // Makes the close that follows abort the connection: the peer sees a reset, nothing lingers. Unix sockets
  // know no reset: their end is an ordinary one, but for TLS, which does not say that it is meant.
  Result<void> set_linger_zero();

  Result<void> set_no_delay(bool on);  // on from the beginning; TCP only
  Result<void> set_keep_alive(bool on);

  // TCP only: EAFNOSUPPORT for others.
  Result<Endpoint> local_endpoint() const;
  Result<Endpoint> remote_endpoint() const;
  // For all, as text: "127.0.0.1:80", "unix:/run/app.sock"; "unix:" for a peer that has no name, as dialers.
  Result<std::string> local_address() const;
  Result<std::string> remote_address() const;

  // TLS: shakes hands now, if that has not happened yet; says again why it failed if it has. Others: does
  // nothing. Parks.
  Result<void> handshake();
  Result<void> handshake(const Context& ctx);
  // Nothing if it is not TLS, or has not shaken hands.
  [[nodiscard]] std::optional<TlsInfo> tls_info() const;

  // For layers above and tests that need what is not offered here.
  [[nodiscard]] Descriptor& descriptor() { return *descriptor_; }

 private:
  friend class Server;     // farewell()
  friend class TlsClient;  // puts itself between
  // Tells the peer that this is the end, if that is not told by closing. Parks if it has to wait.
  void farewell();

  detail::DescriptorOwner descriptor_;
  detail::TransportOwner transport_;  // null: none, the usual case. Goes before the descriptor
};

struct ListenOptions {
  int backlog = 4096;       // connections that wait to be accepted; the system may allow fewer
  bool reuse_port = false;  // several sockets on one port, each with a share of the connections
};

class Listener {
 public:
  Listener(detail::DescriptorOwner descriptor, Endpoint endpoint, std::string address);
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // A socket that listens already, from systemd, say (netpoll/inherited.h). Owns it from then on, also if
  // this fails: because it is no stream socket of TCP or Unix, or does not listen. When this listener is
  // closed, the socket goes on listening for others who hold it, and the file of a Unix socket stays.
  static Result<Listener> adopt(int fd);

  // The next connection. Parks. An error that concerns one connection only is not reported: the next one is
  // waited for. Out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM): the connection stays in the
  // backlog; see serve() for what to do then.
  Result<Conn> accept();
  Result<Conn> accept(const Context& ctx);
  // Ends accept(), now and later, with Errc::kClosed, and removes the file of a Unix socket. Does not park.
  void close();

  // The connections that are accepted from now on are TLS. Before the first accept() only.
  void use_tls(std::shared_ptr<TlsServer> tls);

  // Where it listens, with the port that the system chose for port 0. TCP only: else 0.0.0.0:0.
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // The same as text, for all: "127.0.0.1:80", "unix:/run/app.sock".
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  friend class SpareDescriptor;
  friend Result<Listener> listen_unix(std::string_view path, int backlog);
  Result<Conn> accept_within(const Context* ctx);
  detail::DescriptorOwner descriptor_;
  Endpoint endpoint_;
  std::string address_;
  detail::UnixSocketFileOwner file_;  // null: none, or not ours to remove
  std::shared_ptr<TlsServer> tls_;
  bool adopted_ = false;  // others may hold the socket, too
};

// `network` is "tcp", "tcp4", "tcp6" or "unix".
//
// TCP: ":80" listens on every address; so does "[::]:80", for both versions of IP with "tcp". Parks if the
// host is a name: resolve().
//
// Unix: the address is a path, at most 107 bytes. Who may write to the file may connect; umask decides. A
// socket's file that is there already is replaced if nobody listens there, as after a crash; if somebody
// does, or it is no socket, EADDRINUSE.
//
// Goroutines only.
Result<Listener> listen(std::string_view network, std::string_view address,
                        const ListenOptions& options = {});

// The same for one text: "unix:/run/app.sock", or an address of TCP.
Result<Listener> listen(std::string_view address, const ListenOptions& options = {});

// Connects; `network` as above; gives up at `deadline`, which does not limit the time that the resolver takes
// if the host is a name. Parks. Goroutines only.
Result<Conn> dial(std::string_view network, std::string_view address, TimePoint deadline = kNoDeadline);
// The same; gives up when `ctx` ends, which does not end the resolver either.
Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address);

}  // namespace tuza::net
