#include <tuza/netpoll/wait_fd.h>

#include <fcntl.h>
#include <poll.h>
#include <tuza/netpoll/detail/owners.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/either.h>
#include <tuza/sched/arch/calls.h>

#include <cerrno>

namespace tuza::net {
namespace {

// The state of the descriptor now: 0, -EAGAIN, or -errno. The poller's events only say when to look.
long look(int fd, short events) {
  struct pollfd one{fd, events, 0};
  struct timespec now{};
  const long n = sys::poll(&one, 1, &now);
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
  const long own = sys::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return fail(own);
  const auto watch = reads ? Descriptor::Watch::kReads : Descriptor::Watch::kBoth;
  const Result<Descriptor*> opened = Descriptor::open(static_cast<int>(own), op, watch);
  if (!opened) return std::unexpected(opened.error());
  const detail::DescriptorOwner owner(*opened);
  const Result<long> ready =
      owner->retry(side, op, [events](int number) { return look(number, events); }, &ctx);
  if (!ready) return std::unexpected(ready.error());
  return {};
}

constexpr std::string_view kBoth = "wait to read or write";

// On a thread, which looks up from time to time for the end of the context.
Result<void> poll_both(const Context& ctx, int fd) {
  if (fd < 0) return std::unexpected(Error::from_errno(EBADF, kBoth));  // poll() skips it
  for (;;) {
    if (ctx.done()) return std::unexpected(ctx.cause());
    struct pollfd one{fd, POLLIN | POLLOUT, 0};
    struct timespec step{.tv_sec = 0, .tv_nsec = 10'000'000};
    const long n = tuza::detail::blocking_syscall(sys::poll, &one, 1u, &step);
    if (n < 0) return std::unexpected(Error::from_errno(static_cast<int>(-n), kBoth));
    if (n > 0 && (one.revents & POLLNVAL) != 0) return std::unexpected(Error::from_errno(EBADF, kBoth));
    if (n > 0) return {};
  }
}

}  // namespace

Result<void> wait_readable_or_writable(const Context& ctx, int fd) {
  const long either = descriptor_for_either(fd);
  if (either == -ENOSYS) return poll_both(ctx, fd);
  if (either < 0) return std::unexpected(Error::from_errno(static_cast<int>(-either), kBoth));
  Result<void> ready = wait_readable(ctx, static_cast<int>(either));
  sys::close(either);
  return ready;
}

Result<void> wait_readable(const Context& ctx, int fd) { return wait_for(ctx, fd, Descriptor::Side::kRead); }

Result<void> wait_writable(const Context& ctx, int fd) { return wait_for(ctx, fd, Descriptor::Side::kWrite); }

}  // namespace tuza::net
