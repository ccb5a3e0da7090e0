#include <tuza/netpoll/poll/poller.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>

#include <algorithm>
#include <array>

namespace tuza::net {
namespace {

// No descriptor has this cookie: its index is out of range.
constexpr std::uint64_t kWakeCookie = ~std::uint64_t{0};
constexpr std::size_t kEventsMax = 128;

// epoll_pwait2 takes nanoseconds (Linux 5.11); older kernels get milliseconds, rounded up so that a timer
// is not found early and waited for in a busy loop.
long wait_for_events(int fd, std::span<struct epoll_event> events, std::int64_t timeout_ns) {
  static std::atomic<bool> has_pwait2{true};
  if (timeout_ns > 0 && has_pwait2.load(std::memory_order_relaxed)) {
    struct timespec ts{.tv_sec = timeout_ns / 1'000'000'000, .tv_nsec = timeout_ns % 1'000'000'000};
    const long n = sys::invoke(SYS_epoll_pwait2, fd, events.data(), events.size(), &ts, nullptr, 0);
    if (n != -ENOSYS && n != -EPERM) return n;
    has_pwait2.store(false, std::memory_order_relaxed);
  }
  const std::int64_t ms = timeout_ns <= 0 ? timeout_ns : (timeout_ns + 999'999) / 1'000'000;
  return sys::invoke(SYS_epoll_pwait, fd, events.data(), events.size(),
                     std::clamp<std::int64_t>(ms, -1, 3'600'000), nullptr, 0);
}

}  // namespace

Poller::Poller(long& error) {
  poll_fd_ = static_cast<int>(sys::invoke(SYS_epoll_create1, EPOLL_CLOEXEC));
  wake_fd_ = static_cast<int>(sys::invoke(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
  error = std::min({poll_fd_, wake_fd_, 0});
  if (error != 0) return;
  struct epoll_event event{};
  event.events = EPOLLIN;  // level-triggered: it stays until a blocking wait has taken it
  event.data.u64 = kWakeCookie;
  error = sys::invoke(SYS_epoll_ctl, poll_fd_, EPOLL_CTL_ADD, wake_fd_, &event);
}

Poller::~Poller() {
  if (wake_fd_ >= 0) sys::invoke(SYS_close, wake_fd_);
  if (poll_fd_ >= 0) sys::invoke(SYS_close, poll_fd_);
}

namespace {

constexpr std::uint32_t kReads = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;

long control(int poll_fd, int operation, int fd, std::uint32_t events, std::uint64_t cookie) {
  struct epoll_event event{};
  event.events = events;
  event.data.u64 = cookie;
  return sys::invoke(SYS_epoll_ctl, poll_fd, operation, fd, &event);
}

}  // namespace

long Poller::add(int fd, std::uint64_t cookie) {
  return control(poll_fd_, EPOLL_CTL_ADD, fd, kReads | EPOLLOUT, cookie);
}

long Poller::add_reader(int fd, std::uint64_t cookie) {
  return control(poll_fd_, EPOLL_CTL_ADD, fd, kReads, cookie);
}

// The kernel looks at the descriptor again: one that has become writable meanwhile is reported.
long Poller::watch_writes(int fd, std::uint64_t cookie) {
  return control(poll_fd_, EPOLL_CTL_MOD, fd, kReads | EPOLLOUT, cookie);
}

void Poller::remove(int fd) { control(poll_fd_, EPOLL_CTL_DEL, fd, 0, 0); }

std::size_t Poller::wait(std::int64_t timeout_ns, std::span<PollEvent> into) {
  std::array<struct epoll_event, kEventsMax> events;
  const long n =
      wait_for_events(poll_fd_, std::span(events).first(std::min(into.size(), kEventsMax)), timeout_ns);
  std::size_t count = 0;
  for (long i = 0; i < n; ++i) {
    const struct epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeCookie) {
      // Meant for a thread that blocks; one that only looks in leaves it for that one.
      if (timeout_ns == 0) continue;
      std::uint64_t value = 0;
      sys::invoke(SYS_read, wake_fd_, &value, sizeof value);
      // Read and write in one, after the eventfd is empty: a wake() that came before this wrote nothing, and
      // relies on what it did earlier being visible to whoever returns from here. One that comes later
      // writes again. A plain store may be overtaken by the loads that follow: the wake would be lost.
      wake_pending_.exchange(false, std::memory_order_acq_rel);
      continue;
    }
    const bool hung_up = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0;
    into[count++] = PollEvent{.cookie = event.data.u64,
                              .readable = hung_up || (event.events & EPOLLIN) != 0,
                              .writable = hung_up || (event.events & EPOLLOUT) != 0,
                              .hung_up = hung_up};
  }
  return count;
}

void Poller::wake() {
  if (wake_pending_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  sys::invoke(SYS_write, wake_fd_, &one, sizeof one);
}

}  // namespace tuza::net
