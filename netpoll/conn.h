// Public header, part of <tuza/net.h>.
//
// Conn: a connection, over TCP, a Unix socket, TLS or memory. Blocking calls that block only the goroutine.
//
//     auto conn = tuza::net::dial("tcp", "127.0.0.1:7000");      // netpoll/dial.h; netpoll/listener.h accepts
//     if (!conn) return std::unexpected(conn.error());
//     if (auto sent = conn->write_all("hello"); !sent) return sent;
//
// Ownership: a Conn owns its socket and closes it on destruction. It can be moved while no call uses it.
//
// Thread-safe: any goroutine may call any function at any time. Reads of one connection exclude each other,
// and so do writes, so that a write_all() is not interleaved with another. close() may be called while other
// goroutines read or write: their calls return Errc::kClosed. Destroying the object during a call is not
// allowed.
//
// Errors are values: Errc::kClosed, Errc::kTimeout, or the system's error. SIGPIPE is never raised, except by
// send_file() and relay().
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

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/detail/owners.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/sched/result.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
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

struct ProxyHeader;
struct TlsInfo;

class Conn;
class IdleWatch;
namespace detail {
[[nodiscard]] Result<std::uint64_t> relay_one_way(IdleWatch& watch, Conn& to, Conn& from);
}  // namespace detail

using TimePoint = std::chrono::steady_clock::time_point;
// No deadline.
inline constexpr TimePoint kNoDeadline = TimePoint::max();

// `timeout` from now (tuza::now()), for calls that take a deadline. A timeout beyond the clock's range is clamped.
template <class Rep, class Period>
[[nodiscard]] TimePoint time_after_now(const std::chrono::duration<Rep, Period>& timeout) {
  const TimePoint now = tuza::now();
  return TimePoint(
      std::chrono::nanoseconds(rt::time_after(now.time_since_epoch().count(), rt::whole_ns(timeout))));
}

class Conn {
 public:
  Conn(Conn&&) = default;
  Conn& operator=(Conn&& other) noexcept {
    transport_ = std::move(other.transport_);  // first: the old transport says goodbye over the old socket
    descriptor_ = std::move(other.descriptor_);
    peer_ = other.peer_;
    unix_peer_ = std::move(other.unix_peer_);
    return *this;
  }

  // Waits for at least one byte; returns the number of bytes read, 0 at the end of the stream. Parks.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(const Context& ctx, std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  [[nodiscard]] Result<std::size_t> read(const Context& ctx, std::span<char> into) {
    return read(ctx, std::as_writable_bytes(into));
  }
  // Fills `into`; Errc::kEndOfStream if the stream ends first. Parks.
  [[nodiscard]] Result<void> read_full(std::span<std::byte> into);
  [[nodiscard]] Result<void> read_full(const Context& ctx, std::span<std::byte> into);

  // Sends all data, or returns an error after a part may have been sent. Parks.
  [[nodiscard]] Result<void> write_all(std::span<const std::byte> data);
  [[nodiscard]] Result<void> write_all(std::string_view text) {
    return write_all(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] Result<void> write_all(const Context& ctx, std::span<const std::byte> data);
  [[nodiscard]] Result<void> write_all(const Context& ctx, std::string_view text) {
    return write_all(ctx, std::as_bytes(std::span(text)));
  }
  // Sends what the socket takes without waiting, and returns how much that was: 0 if it has no room, if another goroutine
  // writes over TLS, or before the TLS handshake. Not while another goroutine writes without TLS. Does not park.
  [[nodiscard]] Result<std::size_t> try_write(std::string_view data);
  // Like write_all(), for the last data of the stream: over TLS the close notification goes with it in one
  // system call. No more can be written afterwards; reading continues to work. close() or close_write() must
  // follow. Parks.
  [[nodiscard]] Result<void> write_last(std::string_view text);
  // Writes several pieces with as few system calls as possible. Changes the elements of `pieces`. Parks.
  [[nodiscard]] Result<void> writev_all(std::span<struct iovec> pieces);
  [[nodiscard]] Result<void> writev_all(const Context& ctx, std::span<struct iovec> pieces);
  // Writes `head`, and then a part of a file, by sendfile(2): the bytes do not pass through the process, and a writer that
  // waits for the peer holds no memory for them. With TLS, or from a file system without it, in pieces of 32 KiB. What has
  // been sent is taken off `slice`, also if the call fails: Errc::kEndOfStream if the file ends before the slice, or the
  // error of the file or of the connection. A program that handles SIGPIPE itself gets it here if the peer has closed.
  // Parks; blocks the thread while the disk is read, as File does.
  [[nodiscard]] Result<void> send_file(FileSlice& slice, std::string_view head = {});
  [[nodiscard]] Result<void> send_file(const Context& ctx, FileSlice& slice, std::string_view head = {});

  // From this point in time on, calls of that direction fail with Errc::kTimeout, calls that already wait
  // included. A time of tuza::now(): of a FakeClock (sched/time/fake_clock.h) too, if there is one. A TLS handshake belongs
  // to the call that needs it. The deadline stays until it is set again; kNoDeadline removes it. Cheap: two memory
  // operations, unless the new deadline is earlier than the old one. Does not park.
  void set_read_deadline(TimePoint when);
  void set_write_deadline(TimePoint when);
  void set_deadline(TimePoint when);

  // Limits each wait of a write for the peer to accept data, from the next one on. 0 means no limit, and is the default. Costs
  // nothing while writes do not wait. Replaces a write deadline.
  void set_write_timeout(rt::AnyDuration timeout);
  // With a write timeout: a peer that accepts less than this, measured over all waits of writes, is given up as well. The
  // waits of all writes together may take the timeout, plus the time that the accepted bytes take at this rate. Call it
  // before the first write; 0 means no limit, and is the default.
  void set_write_rate_min(std::uint32_t bytes_per_second);

  // Ends the stream to the peer; reading continues to work.
  [[nodiscard]] Result<void> close_write();
  // Closes the connection; waiting calls return Errc::kClosed. May be called repeatedly. Does not park.
  void close();
  // Makes the following close abort the connection: the peer sees a reset, and nothing lingers. Unix sockets
  // have no reset: they close normally, except that TLS sends no close notification.
  [[nodiscard]] Result<void> set_linger_zero();

  [[nodiscard]] Result<void> set_no_delay(bool on);  // initially on; TCP only
  // Whether the system probes a peer that has said nothing for a minute; one that does not answer for 135 s more is an error of
  // the calls that wait for it. Initially on; TCP only.
  [[nodiscard]] Result<void> set_keep_alive(bool on);

  // TCP only; EAFNOSUPPORT otherwise. The remote address of an accepted connection is known from then on, also after
  // the peer has reset it. Behind a proxy it is the client's, after receive_proxy_header() (netpoll/proxy_protocol.h).
  [[nodiscard]] Result<Endpoint> local_endpoint() const;
  [[nodiscard]] Result<Endpoint> remote_endpoint() const;
  // For all sockets, as text: "127.0.0.1:80", "unix:/run/app.sock"; "unix:" for a peer without a name, such
  // as a dialer.
  [[nodiscard]] Result<std::string> local_address() const;
  [[nodiscard]] Result<std::string> remote_address() const;

  // TLS: performs the handshake now if it has not happened yet; if it has failed, returns the same error
  // again. Otherwise does nothing. Parks.
  [[nodiscard]] Result<void> handshake();
  [[nodiscard]] Result<void> handshake(const Context& ctx);
  // nullopt if the connection is not TLS, or before the handshake.
  [[nodiscard]] std::optional<TlsInfo> tls_info() const;

  // What has arrived, without taking it: at most `into`, 0 at the end of the stream, EAGAIN if nothing is there. Over TLS it
  // is ciphertext. Does not park.
  [[nodiscard]] Result<std::size_t> peek(std::span<char> into);
  // Whether the peer's system has acknowledged all that was written, and all that has arrived is read. False if
  // the system does not tell. Does not park.
  [[nodiscard]] bool all_delivered();

 private:
  friend class Server;  // farewell()
  friend struct detail::ConnParts;
  friend class TlsClient;  // inserts its transport
  friend Result<ProxyHeader> receive_proxy_header(Conn& conn);
  friend Result<std::uint64_t> detail::relay_one_way(IdleWatch& watch, Conn& to, Conn& from);
  Conn(detail::DescriptorOwner descriptor, detail::TransportOwner transport, std::optional<Endpoint> peer);
  void set_client(const ProxyHeader& header);
  // Tells the peer that the stream ends, if closing the socket does not tell it. Parks if it has to wait.
  void farewell();
  [[nodiscard]] Result<void> send_file_within(FileSlice& slice, std::string_view head, const Context* ctx);

  detail::DescriptorOwner descriptor_;
  detail::TransportOwner transport_;  // null: none, the usual case. Destroyed before the descriptor
  std::optional<Endpoint> peer_;      // of an accepted TCP connection
  // The client's Unix socket, "unix:/path", if a proxy has said that it is one; it has no endpoint then. Otherwise null.
  std::unique_ptr<const std::string> unix_peer_;
};

}  // namespace tuza::net
