#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/backlog.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/keep_alive.h>
#include <tuza/netpoll/socket/new_socket.h>
#include <tuza/netpoll/socket/resolve_for.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/socket/unix_socket.h>
#include <tuza/netpoll/tls/transport.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

using Side = Descriptor::Side;

// 0 or -errno.
long bind_and_listen(const NewSocket& socket, const Endpoint& endpoint, std::string_view network,
                     const ListenOptions& options) {
  long error = socket.set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (error == 0 && options.reuse_port) error = socket.set(SOL_SOCKET, SO_REUSEPORT, 1);
  if (error == 0 && endpoint.address().is_v6()) {
    error = socket.set(IPPROTO_IPV6, IPV6_V6ONLY, network == "tcp6" ? 1 : 0);
  }
  // Accepted connections inherit these options, which saves system calls for each.
  if (error == 0) error = socket.set(IPPROTO_TCP, TCP_NODELAY, 1);
  keep_alive(socket);
  const SocketName name = SocketName::of(endpoint);
  if (error == 0) error = sys::bind(socket.fd(), name.address(), name.length);
  if (error == 0) error = sys::listen(socket.fd(), options.backlog);
  return error;
}

// Errors of accept(2) that concern only the connection to be accepted.
bool is_lost_connection(long error) {
  switch (-error) {
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
#if defined(ENONET)  // Linux
    case ENONET:
#endif
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}

}  // namespace

Result<Listener> listen(const Context& ctx, std::string_view network, std::string_view address,
                        const ListenOptions& options) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  if (network == "unix") return listen_unix(ctx, address, options.backlog);
  const Result<std::vector<Endpoint>> all = resolve_for(ctx, network, address);
  if (!all) return std::unexpected(all.error());
  // Of a name with several addresses the first one of IPv4, as in Go: clients that try both versions find it, and those
  // that know only IPv4 do, too.
  const auto v4 = std::ranges::find_if(*all, [](const Endpoint& e) { return e.address().is_v4(); });
  Endpoint endpoint = v4 != all->end() ? *v4 : all->front();
  const auto fail = [&](long error) {
    return std::unexpected(Error::from_errno(static_cast<int>(-error), "listen", std::string(address)));
  };
  // On a machine without IPv6, ":80" means "0.0.0.0:80".
  for (;;) {
    NewSocket socket(endpoint.address().is_v6() ? AF_INET6 : AF_INET, IPPROTO_TCP);
    const bool any_v6 = network == "tcp" && endpoint.address().is_v6() && endpoint.address().is_unspecified();
    if (socket.fd() == -EAFNOSUPPORT && any_v6) {
      endpoint = Endpoint(IpAddress::any_v4(), endpoint.port());
      continue;
    }
    if (socket.fd() < 0) return fail(socket.fd());
    if (const long error = bind_and_listen(socket, endpoint, network, options); error != 0)
      return fail(error);
    // Without getsockname(), the port chosen by the system would stay unknown.
    SocketName bound;
    if (const long error = bound.ask(sys::getsockname, socket.fd()); error != 0) return fail(error);
    endpoint = from_sockaddr(bound.address(), bound.length).value_or(endpoint);
    Result<Descriptor*> descriptor = Descriptor::open(socket.release(), "listen");
    if (!descriptor) return std::unexpected(descriptor.error());
    return detail::ConnParts::make_listener(detail::DescriptorOwner(*descriptor), endpoint,
                                            to_string(endpoint));
  }
}

Result<Listener> listen(std::string_view network, std::string_view address, const ListenOptions& options) {
  return listen(Context::background(), network, address, options);
}

Result<Listener> listen(const Context& ctx, std::string_view address, const ListenOptions& options) {
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix)) return listen(ctx, "unix", address.substr(kUnix.size()), options);
  return listen(ctx, "tcp", address, options);
}

Result<Listener> listen(std::string_view address, const ListenOptions& options) {
  return listen(Context::background(), address, options);
}

Listener::Listener(detail::DescriptorOwner descriptor, Endpoint endpoint, std::string address)
    : descriptor_(std::move(descriptor)), endpoint_(endpoint), address_(std::move(address)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

namespace {

long option_of(int fd, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  const long error = sys::getsockopt(fd, SOL_SOCKET, name, &value, &length);
  return error != 0 ? error : value;
}

// 1, 0 or -errno. macOS and OpenBSD have the option in their headers only: there a socket without a peer is taken for one that
// listens, and accept() says that it does not.
long listens(int fd) {
  const long known = option_of(fd, SO_ACCEPTCONN);
  if (known != -ENOPROTOOPT) return known;
  SocketName peer;
  return peer.ask(sys::getpeername, fd) == -ENOTCONN ? 1 : 0;
}

// 0, or -errno if accept() on `fd` cannot do what Listener promises.
long prepare_to_adopt(int fd) {
  const long type = option_of(fd, SO_TYPE);
  if (type < 0) return type;
  if (type != SOCK_STREAM) return -EPROTOTYPE;
  if (const long yes = listens(fd); yes != 1) return yes < 0 ? yes : -EINVAL;
  const long flags = sys::fcntl(fd, F_GETFL, 0);
  if (flags < 0) return flags;
  const long error = sys::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  return error < 0 ? error : sys::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

Result<Listener> Listener::adopt(int fd) {
  const auto fail = [fd](long error) {
    sys::close(fd);
    return std::unexpected(
        Error::from_errno(static_cast<int>(-error), "adopt", "descriptor " + std::to_string(fd)));
  };
  SocketName name;
  if (const long error = name.ask(sys::getsockname, fd); error != 0) return fail(error);
  const std::optional<Endpoint> endpoint = name.endpoint();
  if (!endpoint && name.storage.ss_family != AF_UNIX) return fail(-EAFNOSUPPORT);
  if (const long error = prepare_to_adopt(fd); error != 0) return fail(error);
  const int on = 1;
  if (endpoint) sys::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Result<Descriptor*> descriptor = Descriptor::open(fd, "adopt");
  if (!descriptor) return std::unexpected(descriptor.error());
  Listener listener(detail::DescriptorOwner(*descriptor), endpoint.value_or(Endpoint()), name.text());
  listener.adopted_ = true;
  return listener;
}

Result<Conn> Listener::accept() { return accept_within(nullptr); }
Result<Conn> Listener::accept(const Context& ctx) { return accept_within(&ctx); }

Result<Conn> Listener::accept_within(const Context* ctx) {
  if (backlog_ != nullptr) [[unlikely]] {
    if (tls_ != nullptr) return std::unexpected(Error::from_errno(EOPNOTSUPP, "accept", "TLS in memory"));
    return backlog_->accept(*descriptor_, ctx);
  }
  // The peer's address costs nothing here. Later, a peer that has reset the connection has none any more.
  SocketName peer;
  const auto accept_one = [this, &peer](int listener) {
    for (;;) {
      peer.length = sizeof peer.storage;
      const long accepted =
          sys::accept4(listener, &peer.storage, &peer.length, sys::kNonBlocking | sys::kCloseOnExec);
      if (accepted >= 0 || !is_lost_connection(accepted)) return accepted;
      // OpenBSD says so of every call once close() has begun.
      const Result<void> may = descriptor_->may_start(Side::kRead, "accept", nullptr);
      if (!may && may.error().closed()) return long{-EINVAL};
    }
  };
  const Result<long> fd = descriptor_->retry(Side::kRead, "accept", accept_one, ctx);
  if (!fd) {
    // EINVAL: the socket no longer listens, because close() is under way.
    const bool closing = fd.error().is(std::errc::invalid_argument);
    return std::unexpected(closing ? Error(Errc::kClosed, "accept") : fd.error());
  }
  Result<Descriptor*> descriptor = Descriptor::open(static_cast<int>(*fd), "accept");
  if (!descriptor) return std::unexpected(descriptor.error());
  detail::DescriptorOwner owner(*descriptor);
  if (tls_) [[unlikely]] {
    detail::TransportOwner transport = tls::make_server_transport(*owner, tls_);
    if (transport == nullptr) return std::unexpected(Error::from_errno(ENOMEM, "accept"));
    return detail::ConnParts::make(std::move(owner), std::move(transport), peer.endpoint());
  }
  return detail::ConnParts::make(std::move(owner), nullptr, peer.endpoint());
}

void Listener::use_tls(std::shared_ptr<TlsServer> tls) { tls_ = std::move(tls); }

void Listener::close() {
  // Remove the file first: clients must not find a socket file on which nobody accepts.
  if (file_) file_->remove();
  // Shut down at once: the descriptor is closed only when the last accept() has noticed, and until then the
  // kernel would accept connections that are never served. Not if the service manager also holds the socket:
  // shutdown() would end it for all holders, and clients that connect from now on belong to our successor. (macOS and the BSDs
  // do not shut down what listens; accept() ends all the same, by the descriptor's close().)
  if (backlog_ != nullptr) {
    backlog_->close();
  } else if (!adopted_) {
    (void)descriptor_->control("shutdown", [](int fd) { return sys::shutdown(fd, SHUT_RDWR); });
  }
  descriptor_->close();
}

}  // namespace tuza::net
