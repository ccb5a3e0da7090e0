#include <tuza/netpoll/wait_fd.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <tuza/netpoll/detail/owners.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/sched/arch/syscall.h>

#include <cerrno>

namespace tuza::net {
namespace {

// The state of the descriptor now: 0, -EAGAIN, or -errno. The poller's events only say when to look.
long look(int fd, short events) {
  struct pollfd one{fd, events, 0};
  const struct timespec now{};
  const long n = sys::invoke(SYS_ppoll, &one, 1, &now, nullptr, 0);
  if (n <= 0) return n == 0 ? -EAGAIN : n;
  return (one.revents & POLLNVAL) != 0 ? -EBADF : 0;
}

Result<void> wait_for(const Context& ctx, int fd, Descriptor::Side side) {
  const bool reads = side == Descriptor::Side::kRead;
  const short events = reads ? POLLIN : POLLOUT;
  const std::string_view op = reads ? "wait to read" : "wait to write";
  const auto fail = [op](long error) -> Result<void> {
    return std::unexpected(Error::from_errno(static_cast<int>(-error), op));
  };
  if (ctx.done()) return std::unexpected(ctx.cause());
  long seen = look(fd, events);
  while (seen == -EINTR) seen = look(fd, events);
  if (seen != -EAGAIN) return seen == 0 ? Result<void>{} : fail(seen);
  // A number of its own: the library's may be registered already, by the library or by another goroutine.
  const long own = sys::invoke(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return fail(own);
  const auto watch = reads ? Descriptor::Watch::kReads : Descriptor::Watch::kBoth;
  const Result<Descriptor*> opened = Descriptor::open(static_cast<int>(own), op, watch);
  if (!opened) return std::unexpected(opened.error());
  const detail::DescriptorOwner owner(*opened);
  owner->set_shared();  // the library has the open file, too
  const Result<long> ready =
      owner->retry(side, op, [events](int number) { return look(number, events); }, &ctx);
  if (!ready) return std::unexpected(ready.error());
  return {};
}

}  // namespace

Result<void> wait_readable_or_writable(const Context& ctx, int fd) {
  // An epoll descriptor is readable when any of its events has happened.
  struct epoll_event either{.events = EPOLLIN | EPOLLOUT, .data = {}};
  const long set = sys::invoke(SYS_epoll_create1, EPOLL_CLOEXEC);
  long error = set;
  if (set >= 0) error = sys::invoke(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &either);
  Result<void> ready;
  if (error >= 0) {
    ready = wait_readable(ctx, static_cast<int>(set));
  } else {
    ready = std::unexpected(Error::from_errno(static_cast<int>(-error), "wait to read or write"));
  }
  if (set >= 0) sys::invoke(SYS_close, set);
  return ready;
}

Result<void> wait_readable(const Context& ctx, int fd) { return wait_for(ctx, fd, Descriptor::Side::kRead); }

Result<void> wait_writable(const Context& ctx, int fd) { return wait_for(ctx, fd, Descriptor::Side::kWrite); }

}  // namespace tuza::net
