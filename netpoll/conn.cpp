#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/tcp.h>
#include <tuza/sched/arch/syscall.h>

#include <algorithm>

namespace tuza::net {
namespace {

using Side = Descriptor::Side;

// steady_clock is CLOCK_MONOTONIC. Times at or before its zero are as good as the first nanosecond.
std::int64_t to_ns(TimePoint when) {
  if (when == kNoDeadline) return Deadline::kNone;
  return std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

Result<void> ignore_value(const Result<long>& result) {
  if (!result) return std::unexpected(result.error());
  return {};
}

Result<void> set_option(Descriptor& descriptor, int level, int name, int value) {
  return ignore_value(descriptor.control("setsockopt", [=](int fd) {
    return sys::invoke(SYS_setsockopt, fd, level, name, &value, sizeof value);
  }));
}

Result<Endpoint> get_name(Descriptor& descriptor, long call, std::string_view op) {
  Endpoint endpoint;
  socklen_t length = static_cast<socklen_t>(endpoint.capacity());
  const Result<long> result =
      descriptor.control(op, [&](int fd) { return sys::invoke(call, fd, endpoint.data(), &length); });
  if (!result) return std::unexpected(result.error());
  return endpoint;
}

Result<void> fill(Descriptor& descriptor, std::span<std::byte> into, const Context* ctx) {
  while (!into.empty()) {
    const Result<std::size_t> n = descriptor.read(into, ctx);
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return std::unexpected(Error(Errc::kEndOfStream, "read"));
    into = into.subspan(*n);
  }
  return {};
}

}  // namespace

void detail::Dispose::operator()(Descriptor* descriptor) const { descriptor->dispose(); }

Result<std::size_t> Conn::read(std::span<std::byte> into) { return descriptor_->read(into); }
Result<std::size_t> Conn::read(LazyBuffer& into) { return descriptor_->read(into); }

Result<std::size_t> Conn::read(const Context& ctx, std::span<std::byte> into) {
  return descriptor_->read(into, &ctx);
}
Result<std::size_t> Conn::read(const Context& ctx, LazyBuffer& into) { return descriptor_->read(into, &ctx); }

Result<void> Conn::read_full(std::span<std::byte> into) { return fill(*descriptor_, into, nullptr); }
Result<void> Conn::read_full(const Context& ctx, std::span<std::byte> into) {
  return fill(*descriptor_, into, &ctx);
}

Result<void> Conn::write_all(std::span<const std::byte> data) { return descriptor_->write_all(data); }
Result<void> Conn::write_all(const Context& ctx, std::span<const std::byte> data) {
  return descriptor_->write_all(data, &ctx);
}
Result<void> Conn::writev_all(std::span<struct iovec> pieces) { return descriptor_->write_all(pieces); }
Result<void> Conn::writev_all(const Context& ctx, std::span<struct iovec> pieces) {
  return descriptor_->write_all(pieces, &ctx);
}

void Conn::set_read_deadline(TimePoint when) { descriptor_->set_deadline(Side::kRead, to_ns(when)); }
void Conn::set_write_deadline(TimePoint when) { descriptor_->set_deadline(Side::kWrite, to_ns(when)); }
void Conn::set_write_timeout(std::chrono::nanoseconds timeout) {
  descriptor_->set_write_timeout(timeout.count());
}
void Conn::set_deadline(TimePoint when) {
  set_read_deadline(when);
  set_write_deadline(when);
}

Result<void> Conn::close_write() {
  return ignore_value(
      descriptor_->control("shutdown", [](int fd) { return sys::invoke(SYS_shutdown, fd, SHUT_WR); }));
}

void Conn::close() { descriptor_->close(); }

Result<void> Conn::set_linger_zero() {
  const struct linger linger{.l_onoff = 1, .l_linger = 0};
  return ignore_value(descriptor_->control("setsockopt", [&linger](int fd) {
    return sys::invoke(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  }));
}

Result<void> Conn::set_no_delay(bool on) { return set_option(*descriptor_, IPPROTO_TCP, TCP_NODELAY, on); }
Result<void> Conn::set_keep_alive(bool on) { return set_option(*descriptor_, SOL_SOCKET, SO_KEEPALIVE, on); }

Result<Endpoint> Conn::local_endpoint() const {
  return get_name(*descriptor_, SYS_getsockname, "getsockname");
}
Result<Endpoint> Conn::remote_endpoint() const {
  return get_name(*descriptor_, SYS_getpeername, "getpeername");
}

}  // namespace tuza::net
