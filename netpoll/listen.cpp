#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/tcp.h>
#include <tuza/sched/arch/syscall.h>

#include <asio/ip/tcp.hpp>

#include <cerrno>
#include <utility>

namespace tuza::net {
namespace {

using Side = Descriptor::Side;

// A socket that is closed again unless it was released.
class NewSocket {
 public:
  explicit NewSocket(int family)
      : fd_(sys::invoke(SYS_socket, family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)) {}
  ~NewSocket() {
    if (fd_ >= 0) sys::invoke(SYS_close, fd_);
  }
  NewSocket(const NewSocket&) = delete;
  NewSocket& operator=(const NewSocket&) = delete;

  [[nodiscard]] long fd() const { return fd_; }
  int release() { return static_cast<int>(std::exchange(fd_, -1)); }
  long set(int level, int name, int value) const {
    return sys::invoke(SYS_setsockopt, fd_, level, name, &value, sizeof value);
  }

 private:
  long fd_;
};

Result<Endpoint> resolve_for(std::string_view network, std::string_view address) {
  if (network != "tcp" && network != "tcp4" && network != "tcp6") {
    return std::unexpected(Error::from_errno(EPROTONOSUPPORT, "network", std::string(network)));
  }
  Result<Endpoint> endpoint = resolve(address);
  if (!endpoint) return endpoint;
  const bool any = endpoint->address().is_unspecified();
  if (network == "tcp4" && any) *endpoint = Endpoint(asio::ip::tcp::v4(), endpoint->port());
  if (endpoint->address().is_v6() ? network == "tcp4" : network == "tcp6") {
    return std::unexpected(Error::from_errno(EAFNOSUPPORT, "network", std::string(address)));
  }
  return endpoint;
}

int family_of(const Endpoint& endpoint) { return endpoint.address().is_v6() ? AF_INET6 : AF_INET; }

// 0 or -errno.
long bind_and_listen(const NewSocket& socket, const Endpoint& endpoint, std::string_view network,
                     const ListenOptions& options) {
  long error = socket.set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (error == 0 && options.reuse_port) error = socket.set(SOL_SOCKET, SO_REUSEPORT, 1);
  if (error == 0 && endpoint.address().is_v6()) {
    error = socket.set(IPPROTO_IPV6, IPV6_V6ONLY, network == "tcp6" ? 1 : 0);
  }
  // Connections inherit it: one system call less for each.
  if (error == 0) error = socket.set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (error == 0) error = sys::invoke(SYS_bind, socket.fd(), endpoint.data(), endpoint.size());
  if (error == 0) error = sys::invoke(SYS_listen, socket.fd(), options.backlog);
  return error;
}

// Errors of accept that concern the one connection that was to be accepted, accept(2).
bool is_lost_connection(long error) {
  switch (-error) {
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}

}  // namespace

Result<Listener> listen(std::string_view network, std::string_view address, const ListenOptions& options) {
  Result<Endpoint> endpoint = resolve_for(network, address);
  if (!endpoint) return std::unexpected(endpoint.error());
  const auto fail = [&](long error) {
    return std::unexpected(Error::from_errno(static_cast<int>(-error), "listen", std::string(address)));
  };
  // ":80" on a machine without IPv6 is "0.0.0.0:80".
  for (;;) {
    NewSocket socket(family_of(*endpoint));
    const bool any_v6 =
        network == "tcp" && endpoint->address().is_v6() && endpoint->address().is_unspecified();
    if (socket.fd() == -EAFNOSUPPORT && any_v6) {
      *endpoint = Endpoint(asio::ip::tcp::v4(), endpoint->port());
      continue;
    }
    if (socket.fd() < 0) return fail(socket.fd());
    if (const long error = bind_and_listen(socket, *endpoint, network, options); error != 0)
      return fail(error);
    socklen_t length = static_cast<socklen_t>(endpoint->capacity());
    sys::invoke(SYS_getsockname, socket.fd(), endpoint->data(), &length);
    Result<Descriptor*> descriptor = Descriptor::open(socket.release(), "listen");
    if (!descriptor) return std::unexpected(descriptor.error());
    return Listener(detail::DescriptorOwner(*descriptor), *endpoint);
  }
}

Result<Conn> Listener::accept() { return accept_within(nullptr); }
Result<Conn> Listener::accept(const Context& ctx) { return accept_within(&ctx); }

Result<Conn> Listener::accept_within(const Context* ctx) {
  const auto accept_one = [](int listener) {
    for (;;) {
      const long accepted =
          sys::invoke(SYS_accept4, listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0 || !is_lost_connection(accepted)) return accepted;
    }
  };
  const Result<long> fd = descriptor_->retry(Side::kRead, "accept", accept_one, ctx);
  if (!fd) {
    // EINVAL: it listens no more, close() is under way.
    const bool closing = fd.error().is(std::errc::invalid_argument);
    return std::unexpected(closing ? Error(Errc::kClosed, "accept") : fd.error());
  }
  Result<Descriptor*> descriptor = Descriptor::open(static_cast<int>(*fd), "accept");
  if (!descriptor) return std::unexpected(descriptor.error());
  return Conn(detail::DescriptorOwner(*descriptor));
}

void Listener::close() {
  // At once: the number is closed only when the last accept() has noticed, and until then the kernel would
  // take connections that nobody serves.
  (void)descriptor_->control("shutdown", [](int fd) { return sys::invoke(SYS_shutdown, fd, SHUT_RDWR); });
  descriptor_->close();
}

namespace {

Result<Conn> dial_within(std::string_view network, std::string_view address, TimePoint deadline,
                         const Context* ctx) {
  const Result<Endpoint> endpoint = resolve_for(network, address);
  if (!endpoint) return std::unexpected(endpoint.error());
  const auto fail = [&](Error error) {
    return std::unexpected(Error(error.code(), "dial", std::string(address)));
  };
  NewSocket socket(family_of(*endpoint));
  if (socket.fd() < 0) return fail(Error::from_errno(static_cast<int>(-socket.fd()), "dial"));
  socket.set(IPPROTO_TCP, TCP_NODELAY, 1);
  // Before it is registered: the poller would report a socket that is not even connecting as hung up.
  const long begun = sys::invoke(SYS_connect, socket.fd(), endpoint->data(), endpoint->size());
  if (begun != 0 && begun != -EINPROGRESS) return fail(Error::from_errno(static_cast<int>(-begun), "dial"));
  Result<Descriptor*> opened = Descriptor::open(socket.release(), "dial");
  if (!opened) return fail(opened.error());
  Conn conn{detail::DescriptorOwner(*opened)};
  conn.set_write_deadline(deadline);
  const auto look = [](int fd) -> long {
    int error = 0;
    socklen_t length = sizeof error;
    sys::invoke(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return -error;
    struct sockaddr_storage peer;
    socklen_t peer_length = sizeof peer;
    // Neither failed nor connected: not yet.
    const long named = sys::invoke(SYS_getpeername, fd, &peer, &peer_length);
    return named == -ENOTCONN ? -EAGAIN : named;
  };
  const Result<long> connected = (*opened)->retry(Side::kWrite, "dial", look, ctx);
  if (!connected && ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
  if (!connected) return fail(connected.error());
  conn.set_write_deadline(kNoDeadline);
  return conn;
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
