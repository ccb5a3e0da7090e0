#include <tuza/netpoll/poll/poller.h>

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/syscall.h>

#include <algorithm>
#include <array>

namespace tuza::net {
namespace {

// No descriptor has this cookie: its index is out of range.
constexpr std::uint64_t kWakeCookie = ~std::uint64_t{0};
constexpr std::size_t kEventsMax = 128;

// epoll_pwait2 takes nanoseconds (Linux 5.11). Older kernels, and sandboxes that do not know the call, get
// milliseconds, rounded up: otherwise the wait would end before a timer expires, and the rest would be a busy
// loop.
long wait_for_events(int fd, std::span<struct epoll_event> events, std::int64_t timeout_ns) {
  static std::atomic<bool> has_pwait2{true};
  if (timeout_ns > 0 && has_pwait2.load(std::memory_order_relaxed)) {
    struct timespec ts{.tv_sec = timeout_ns / 1'000'000'000, .tv_nsec = timeout_ns % 1'000'000'000};
    const long n = sys::invoke(SYS_epoll_pwait2, fd, events.data(), events.size(), &ts, nullptr, 0);
    if (n >= 0 || n == -EINTR) return n;
    if (n == -ENOSYS || n == -EPERM) has_pwait2.store(false, std::memory_order_relaxed);
  }
  const std::int64_t ms = timeout_ns <= 0 ? timeout_ns : (timeout_ns + 999'999) / 1'000'000;
  return sys::invoke(SYS_epoll_pwait, fd, events.data(), events.size(),
                     std::clamp<std::int64_t>(ms, -1, 3'600'000), nullptr, 0);
}

constexpr std::uint32_t kReads = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;

long control(int poll_fd, int operation, int fd, std::uint32_t events, std::uint64_t cookie) {
  struct epoll_event event{};
  event.events = events;
  event.data.u64 = cookie;
  return sys::invoke(SYS_epoll_ctl, poll_fd, operation, fd, &event);
}

}  // namespace

struct Poller::State {
  ~State() {
    if (wake_fd >= 0) sys::invoke(SYS_close, wake_fd);
    if (poll_fd >= 0) sys::invoke(SYS_close, poll_fd);
  }
  long end_wake(std::uint32_t events);

  const int poll_fd = static_cast<int>(sys::invoke(SYS_epoll_create1, EPOLL_CLOEXEC));
  const int wake_fd = static_cast<int>(sys::invoke(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<bool> wake_pending{false};
  std::atomic<bool> wakes_by_interest{false};  // the system refuses to write or read wake_fd
};

Poller::Poller(long& error) : state_(std::make_unique<State>()) {
  error = std::min({state_->poll_fd, state_->wake_fd, 0});
  // Level-triggered: the wake-up stays until a blocking wait has consumed it.
  if (error == 0) error = control(state_->poll_fd, EPOLL_CTL_ADD, state_->wake_fd, EPOLLIN, kWakeCookie);
  if (error != 0) return;
  struct epoll_event none{};
  const long n = wait_for_events(state_->poll_fd, std::span(&none, 1), 0);
  if (n < 0 && n != -EINTR) error = n;
}

Poller::~Poller() = default;

long Poller::add(int fd, std::uint64_t cookie) {
  return control(state_->poll_fd, EPOLL_CTL_ADD, fd, kReads | EPOLLOUT, cookie);
}

long Poller::add_reader(int fd, std::uint64_t cookie) {
  return control(state_->poll_fd, EPOLL_CTL_ADD, fd, kReads, cookie);
}

// The kernel checks the descriptor again: a descriptor that has become writable meanwhile is reported.
long Poller::watch_writes(int fd, std::uint64_t cookie) {
  return control(state_->poll_fd, EPOLL_CTL_MOD, fd, kReads | EPOLLOUT, cookie);
}

void Poller::remove(int fd) { control(state_->poll_fd, EPOLL_CTL_DEL, fd, 0, 0); }

bool Poller::has_ended(int fd) {
  struct pollfd now{.fd = fd, .events = POLLRDHUP, .revents = 0};
  struct timespec at_once{};
  long n = -EINTR;
  while (n == -EINTR) n = sys::poll(&now, 1, &at_once);  // also if a signal comes meanwhile
  return n != 0;
}

std::size_t Poller::wait(std::int64_t timeout_ns, std::span<PollEvent> into) {
  std::array<struct epoll_event, kEventsMax> events;
  const long n = wait_for_events(state_->poll_fd, std::span(events).first(std::min(into.size(), kEventsMax)),
                                 timeout_ns);
  if (n < 0 && n != -EINTR) refused("epoll_pwait", n, timeout_ns);
  std::size_t count = 0;
  for (long i = 0; i < n; ++i) {
    const struct epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeCookie) {
      // The wake-up is for a blocking thread; a thread that polls without blocking leaves it.
      if (timeout_ns == 0) continue;
      // After an error the next wait finds the wake-up again at once.
      if (const long error = state_->end_wake(event.events); error != 0)
        refused("epoll_ctl", error, timeout_ns);
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

// A wake-up is normally a value in the eventfd, which the poller watches for reading. Where the system
// refuses to write or read the eventfd, a wake-up is an interest in writing, for which an eventfd is always
// ready: epoll_ctl() sets and clears this interest. The first refusal switches the form for the rest of the
// poller's life. Between the two changes of wake_pending, one thread wakes, and one thread that has seen the
// event ends the wake-up. So these two threads never conflict while the form is switched.
void Poller::wake() {
  if (state_->wake_pending.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  if (!state_->wakes_by_interest.load(std::memory_order_relaxed)) {
    if (sys::invoke(SYS_write, state_->wake_fd, &one, sizeof one) > 0) return;
    state_->wakes_by_interest.store(true, std::memory_order_relaxed);
  }
  if (control(state_->poll_fd, EPOLL_CTL_MOD, state_->wake_fd, EPOLLOUT, kWakeCookie) == 0) return;
  state_->wake_pending.store(false, std::memory_order_release);  // the next wake-up tries again
}

long Poller::State::end_wake(std::uint32_t events) {
  std::uint64_t value = 0;
  long error = 0;
  const bool by_interest = (events & EPOLLOUT) != 0;
  if (!by_interest) {
    const long n = sys::invoke(SYS_read, wake_fd, &value, sizeof value);
    if (n < 0 && n != -EAGAIN) wakes_by_interest.store(true, std::memory_order_relaxed);
  }
  if (by_interest || wakes_by_interest.load(std::memory_order_relaxed)) {
    error = control(poll_fd, EPOLL_CTL_MOD, wake_fd, 0, kWakeCookie);
  }
  // The exchange reads and writes, and comes after the wake-up is cleared. A wake() that came before it did
  // nothing, and relies on its caller's earlier writes being visible to the thread that returns from here. A
  // wake() that comes later wakes again. A plain store could be overtaken by the loads that follow it, and
  // the wake-up would be lost.
  wake_pending.exchange(false, std::memory_order_acq_rel);
  return error;
}

}  // namespace tuza::net
