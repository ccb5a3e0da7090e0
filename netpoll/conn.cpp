#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/socket/socket_queues.h>
#include <tuza/netpoll/socket/transport.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/arch/calls.h>

#include <cerrno>

namespace tuza::net {
namespace {

using Side = Descriptor::Side;

Result<void> ignore_value(const Result<long>& result) {
  if (!result) return std::unexpected(result.error());
  return {};
}

Result<void> set_option(Descriptor& descriptor, int level, int name, int value) {
  return ignore_value(descriptor.control(
      "setsockopt", [=](int fd) { return sys::setsockopt(fd, level, name, &value, sizeof value); }));
}

SocketStandIn* stand_in(const detail::TransportOwner& transport) {
  return transport == nullptr ? nullptr : transport->stand_in();
}

// Of a socket only: an error if it is closed.
Result<void> is_open(Descriptor& descriptor, std::string_view op) {
  return ignore_value(descriptor.control(op, [](int) { return 0L; }));
}

Result<Endpoint> of_stand_in(Descriptor& descriptor, const Endpoint& endpoint, std::string_view op) {
  const Result<void> open = is_open(descriptor, op);
  if (!open) return std::unexpected(open.error());
  return endpoint;
}

Result<std::string> as_text(const Result<Endpoint>& endpoint) {
  if (!endpoint) return std::unexpected(endpoint.error());
  return to_string(*endpoint);
}

template <class Call>
Result<SocketName> get_name(Descriptor& descriptor, Call call, std::string_view op) {
  SocketName name;
  const Result<long> result = descriptor.control(op, [&](int fd) { return name.ask(call, fd); });
  if (!result) return std::unexpected(result.error());
  return name;
}

template <class Call>
Result<Endpoint> get_endpoint(Descriptor& descriptor, Call call, std::string_view op) {
  const Result<SocketName> name = get_name(descriptor, call, op);
  if (!name) return std::unexpected(name.error());
  const std::optional<Endpoint> endpoint = name->endpoint();
  if (!endpoint) return std::unexpected(Error::from_errno(EAFNOSUPPORT, op, name->text()));
  return *endpoint;
}

template <class Call>
Result<std::string> get_address(Descriptor& descriptor, Call call, std::string_view op) {
  const Result<SocketName> name = get_name(descriptor, call, op);
  if (!name) return std::unexpected(name.error());
  return name->text();
}

template <class Read>
Result<void> fill(std::span<std::byte> into, Read read) {
  while (!into.empty()) {
    const Result<std::size_t> n = read(into);
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return std::unexpected(Error(Errc::kEndOfStream, "read"));
    into = into.subspan(*n);
  }
  return {};
}

}  // namespace

void detail::Dispose::operator()(Descriptor* descriptor) const { descriptor->dispose(); }
void detail::Dispose::operator()(Transport* transport) const {
  transport->closing();
  delete transport;
}

Conn::Conn(detail::DescriptorOwner descriptor, detail::TransportOwner transport, std::optional<Endpoint> peer)
    : descriptor_(std::move(descriptor)), transport_(std::move(transport)), peer_(peer) {}

Result<std::size_t> Conn::read(std::span<std::byte> into) {
  if (transport_) [[unlikely]]
    return transport_->read(into, nullptr, nullptr);
  return descriptor_->read(into);
}
Result<std::size_t> Conn::read(const Context& ctx, std::span<std::byte> into) {
  return transport_ ? transport_->read(into, nullptr, &ctx) : descriptor_->read(into, &ctx);
}
Result<std::size_t> detail::ConnParts::read(Conn& conn, LazyBuffer& into, const Context* ctx) {
  if (conn.transport_) [[unlikely]]
    return conn.transport_->read({}, &into, ctx);
  return conn.descriptor_->read(into, ctx);
}

Result<void> Conn::read_full(std::span<std::byte> into) {
  return fill(into, [this](std::span<std::byte> rest) { return read(rest); });
}
Result<void> Conn::read_full(const Context& ctx, std::span<std::byte> into) {
  return fill(into, [this, &ctx](std::span<std::byte> rest) { return read(ctx, rest); });
}

namespace {

Result<void> write_through(Transport& transport, std::span<const std::byte> data, const Context* ctx,
                           bool last = false) {
  struct iovec piece{const_cast<std::byte*>(data.data()), data.size()};  // iovec is also used for reading
  return transport.write_all(std::span(&piece, 1), ctx, last);
}

}  // namespace

Result<void> Conn::write_all(std::span<const std::byte> data) {
  if (transport_) [[unlikely]]
    return write_through(*transport_, data, nullptr);
  return descriptor_->write_all(data);
}
Result<void> Conn::write_all(const Context& ctx, std::span<const std::byte> data) {
  return transport_ ? write_through(*transport_, data, &ctx) : descriptor_->write_all(data, &ctx);
}
Result<std::size_t> Conn::try_write(std::string_view data) {
  if (transport_) return transport_->try_write(std::as_bytes(std::span(data)));
  const Result<long> sent = descriptor_->control("write", [data](int fd) {
    const long n = sys::sendto(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
    return n == -EAGAIN || n == -EINTR ? 0 : n;
  });
  if (!sent) return std::unexpected(sent.error());
  return static_cast<std::size_t>(*sent);
}
Result<void> Conn::write_last(std::string_view text) {
  const std::span<const std::byte> data = std::as_bytes(std::span(text));
  if (transport_) [[unlikely]]
    return write_through(*transport_, data, nullptr, true);
  return descriptor_->write_all(data);
}
Result<void> Conn::writev_all(std::span<struct iovec> pieces) {
  if (transport_) [[unlikely]]
    return transport_->write_all(pieces, nullptr, false);
  return descriptor_->write_all(pieces);
}
Result<void> Conn::writev_all(const Context& ctx, std::span<struct iovec> pieces) {
  return transport_ ? transport_->write_all(pieces, &ctx, false) : descriptor_->write_all(pieces, &ctx);
}

void Conn::set_read_deadline(TimePoint when) {
  descriptor_->set_deadline(Side::kRead, Deadline::to_ns(when));
}
void Conn::set_write_deadline(TimePoint when) {
  descriptor_->set_deadline(Side::kWrite, Deadline::to_ns(when));
}
void Conn::set_write_rate_min(std::uint32_t bytes_per_second) {
  descriptor_->set_write_rate_min(bytes_per_second);
}
void Conn::set_write_timeout(rt::AnyDuration timeout) {
  descriptor_->set_write_timeout(timeout.duration.count());
}
void Conn::set_deadline(TimePoint when) {
  set_read_deadline(when);
  set_write_deadline(when);
}

Result<void> Conn::close_write() {
  if (transport_) return transport_->close_write();
  return ignore_value(descriptor_->control("shutdown", [](int fd) { return sys::shutdown(fd, SHUT_WR); }));
}

void Conn::close() {
  if (transport_) transport_->closing();
  descriptor_->close();
}

void detail::ConnParts::close(Conn& conn, const Error& why) {
  if (conn.transport_) conn.transport_->closing();
  conn.descriptor_->close(&why);
}

void Conn::farewell() {
  if (transport_) [[unlikely]]
    transport_->farewell();
}

Result<void> Conn::handshake() {
  if (!transport_) return {};
  return transport_->handshake(nullptr);
}
Result<void> Conn::handshake(const Context& ctx) {
  if (!transport_) return {};
  return transport_->handshake(&ctx);
}
std::optional<TlsInfo> Conn::tls_info() const {
  if (!transport_) return std::nullopt;
  return transport_->tls_info();
}

Result<void> Conn::set_linger_zero() {
  if (transport_) transport_->aborting();
  if (stand_in(transport_) != nullptr) return is_open(*descriptor_, "setsockopt");
  const struct linger linger{.l_onoff = 1, .l_linger = 0};
  return ignore_value(descriptor_->control("setsockopt", [&linger](int fd) {
    return sys::setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  }));
}

Result<void> Conn::set_no_delay(bool on) {
  if (stand_in(transport_) != nullptr) return is_open(*descriptor_, "setsockopt");
  return set_option(*descriptor_, IPPROTO_TCP, TCP_NODELAY, on);
}
Result<void> Conn::set_keep_alive(bool on) {
  if (stand_in(transport_) != nullptr) return is_open(*descriptor_, "setsockopt");
  return set_option(*descriptor_, SOL_SOCKET, SO_KEEPALIVE, on);
}

Result<std::size_t> Conn::peek(std::span<char> into) {
  SocketStandIn* memory = stand_in(transport_);
  const Result<long> n = descriptor_->control("peek", [&](int fd) -> long {
    if (memory != nullptr) return memory->receive(into, /*takes=*/false);
    return sys::recvfrom(fd, into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT, nullptr, nullptr);
  });
  if (!n) return std::unexpected(n.error());
  return static_cast<std::size_t>(*n);
}

bool Conn::all_delivered() {
  if (SocketStandIn* memory = stand_in(transport_)) return memory->unread() == 0;
  bool delivered = false;
  const Result<long> asked = descriptor_->control("ioctl", [&](int fd) {
    delivered = socket_queues::unacknowledged(fd) == 0 && socket_queues::unread(fd) == 0;
    return 0L;
  });
  return asked && delivered;
}

Result<Endpoint> Conn::local_endpoint() const {
  if (SocketStandIn* memory = stand_in(transport_))
    return of_stand_in(*descriptor_, memory->local(), "getsockname");
  return get_endpoint(*descriptor_, sys::getsockname, "getsockname");
}
Result<Endpoint> Conn::remote_endpoint() const {
  if (peer_) return *peer_;
  if (unix_peer_ != nullptr)
    return std::unexpected(Error::from_errno(EAFNOSUPPORT, "remote endpoint", *unix_peer_));
  if (SocketStandIn* memory = stand_in(transport_))
    return of_stand_in(*descriptor_, memory->remote(), "getpeername");
  return get_endpoint(*descriptor_, sys::getpeername, "getpeername");
}
Result<std::string> Conn::local_address() const {
  if (stand_in(transport_) != nullptr) return as_text(local_endpoint());
  return get_address(*descriptor_, sys::getsockname, "getsockname");
}
Result<std::string> Conn::remote_address() const {
  if (peer_) return to_string(*peer_);
  if (unix_peer_ != nullptr) return *unix_peer_;
  if (stand_in(transport_) != nullptr) return as_text(remote_endpoint());
  return get_address(*descriptor_, sys::getpeername, "getpeername");
}
void Conn::set_client(const ProxyHeader& header) {
  if (header.client) {
    peer_ = unmapped(*header.client);
  } else if (header.unix_client) {
    peer_.reset();
    unix_peer_ = std::make_unique<const std::string>("unix:" + *header.unix_client);
  }
}

}  // namespace tuza::net
