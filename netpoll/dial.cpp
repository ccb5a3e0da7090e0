#include <netinet/in.h>
#include <netinet/tcp.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/new_socket.h>
#include <tuza/netpoll/socket/resolve_for.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/tcp.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

using Side = Descriptor::Side;

// The names to try, in this order; at least one.
Result<std::vector<SocketName>> names_of(std::string_view network, std::string_view address) {
  if (network == "unix") {
    if (const std::optional<SocketName> name = SocketName::of_path(address)) return std::vector{*name};
    const bool bad = address.empty() || address.find('\0') != address.npos;
    return std::unexpected(Error::from_errno(bad ? EINVAL : ENAMETOOLONG, "dial", std::string(address)));
  }
  const Result<std::vector<Endpoint>> endpoints = resolve_for(network, address);
  if (!endpoints) return std::unexpected(endpoints.error());
  std::vector<SocketName> names;
  for (const Endpoint& endpoint : *endpoints) {
    SocketName& name = names.emplace_back();
    std::memcpy(&name.storage, endpoint.data(), endpoint.size());
    name.length = static_cast<socklen_t>(endpoint.size());
  }
  return names;
}

// Calls connect(2); the result is in `begun`. EAGAIN occurs with Unix sockets: the listener's queue is full,
// and no event reports free space. The function therefore retries with increasing pauses.
Result<void> call_peer(const NewSocket& socket, const SocketName& peer, TimePoint deadline,
                       const Context* ctx, long& begun) {
  constexpr std::chrono::milliseconds kFirstPause{1}, kLongestPause{20};
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    begun = sys::invoke(SYS_connect, socket.fd(), peer.address(), peer.length);
    if (begun == -EALREADY || begun == -EISCONN)
      begun = -EINPROGRESS;  // a call interrupted by a signal continues in the kernel
    if (begun != -EAGAIN && begun != -EINTR) return {};
    if (ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
    // Compare with the deadline, not with the remaining time, which overflows for a deadline before the
    // clock's zero.
    const TimePoint now = std::chrono::steady_clock::now();
    if (deadline <= now) return std::unexpected(Error(Errc::kTimeout, "dial"));
    sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline - now));
  }
}

Result<Conn> dial_one(const SocketName& peer, std::string_view address, TimePoint deadline,
                      const Context* ctx) {
  const auto fail = [&](const Error& error) {
    return std::unexpected(Error(error.code(), "dial", std::string(address)));
  };
  const bool tcp = peer.storage.ss_family != AF_UNIX;
  NewSocket socket(peer.storage.ss_family, tcp ? IPPROTO_TCP : 0);
  if (socket.fd() < 0) return fail(Error::from_errno(static_cast<int>(-socket.fd()), "dial"));
  if (tcp) socket.set(IPPROTO_TCP, TCP_NODELAY, 1);
  // Connect before registering: the poller would report a socket that is not yet connecting as hung up.
  long begun = 0;
  if (Result<void> called = call_peer(socket, peer, deadline, ctx, begun); !called) {
    return ctx != nullptr && ctx->done() ? std::unexpected(ctx->cause()) : fail(called.error());
  }
  if (begun != 0 && begun != -EINPROGRESS) return fail(Error::from_errno(static_cast<int>(-begun), "dial"));
  const auto watch = begun == 0 ? Descriptor::Watch::kReads : Descriptor::Watch::kBoth;
  Result<Descriptor*> opened = Descriptor::open(socket.release(), "dial", watch);
  if (!opened) return fail(opened.error());
  Conn conn{detail::DescriptorOwner(*opened)};
  conn.set_write_deadline(deadline);
  const auto look = [](int fd) -> long {
    int error = 0;
    socklen_t length = sizeof error;
    // If the query itself fails, report its error: a failed connection would otherwise look like a pending
    // one.
    const long asked = sys::invoke(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (asked != 0 || error != 0) return asked != 0 ? asked : -error;
    SocketName found;
    // Neither failed nor connected: still pending.
    const long named = found.ask(SYS_getpeername, fd);
    return named == -ENOTCONN ? -EAGAIN : named;
  };
  const Result<long> connected = (*opened)->retry(Side::kWrite, "dial", look, ctx);
  if (!connected && ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
  if (!connected) return fail(connected.error());
  conn.set_write_deadline(kNoDeadline);
  return conn;
}

// Tries the addresses of a name one after the other; the error is that of the first.
Result<Conn> dial_within(std::string_view network, std::string_view address, TimePoint deadline,
                         const Context* ctx) {
  const Result<std::vector<SocketName>> peers = names_of(network, address);
  if (!peers) return std::unexpected(peers.error());
  Result<Conn> first = dial_one(peers->front(), address, deadline, ctx);
  for (std::size_t i = 1; i < peers->size(); ++i) {
    const bool over = first || first.error().timeout() || (ctx != nullptr && ctx->done());
    if (over) break;
    if (Result<Conn> other = dial_one((*peers)[i], address, deadline, ctx)) return other;
  }
  return first;
}

}  // namespace

Result<Conn> dial(std::string_view network, std::string_view address, TimePoint deadline) {
  return dial_within(network, address, deadline, nullptr);
}

Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  return dial_within(network, address, kNoDeadline, &ctx);
}

}  // namespace tuza::net
