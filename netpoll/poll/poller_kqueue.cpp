// The poller on kqueue: macOS, FreeBSD, OpenBSD, NetBSD, DragonFly. It is tested on Linux, on a kqueue of the tests' own
// (tests/kqueue/kqueue.cpp); where it has run is said in docs/internals/porting.md.
//
// What differs from epoll, and what it costs here:
//
//   - A filter watches one direction, and each direction is an event of its own. A reader needs one registration,
//     a descriptor for both directions two; only connect() and writes that wait pay for the second.
//   - EV_CLEAR is the edge trigger: an event is reported once, and again when more data (more room) comes. EV_ADD
//     looks at the present state, so that nothing is lost between a call that would block and the registration.
//   - EV_EOF of the read filter says that the peer has ended its side, perhaps with data left to read; that of the
//     write filter, that nothing can be written any more, also if this process has ended its side: then it says nothing
//     about the peer. `fflags` has the socket's error, if there is one; the call that tries next gets it from the kernel, and
//     gets the data first. Both directions are woken, because some systems report the end of a pipe's reader to the
//     read filter of its writer.
//   - The write filter of a pipe whose readers have gone is refused: with EPIPE on FreeBSD, OpenBSD and DragonFly, with EBADF
//     on NetBSD. (macOS reports EV_EOF; old versions of it did both.) epoll reports such a pipe as ended, and so must this:
//     the event is made here, and the caller gets EPIPE from its write.
//   - Once the write filter is registered, each acknowledgement that makes room may be an event, also when nobody waits.
//   - There is no event for urgent data on FreeBSD, and no common one elsewhere. A short read that stopped at the
//     urgent mark cannot be told from one that has emptied the socket. So short reads show nothing here
//     (kReportsUrgentData), and a reader asks the kernel once more before it waits.
//   - Closing a descriptor's number ends its registrations, also where another number or another process has the same file
//     open: there is nothing that a closed number could still report, and nothing to remove in front of close()
//     (kClosingRemoves). That would be two calls for each connection, of which one would mostly fail.
//   - `udata` is a pointer, or an integer on old NetBSD: wide enough for the cookie on 64-bit systems.
//   - A change list that meets an error goes on where there is room for a report, and stops elsewhere: macOS stops at
//     the first ENOENT, and EV_RECEIPT without room for the receipts leaves changes out. So each call makes one change
//     and has no room for events; then the call's own result is that change's.
//   - EINTR comes after the change has been made.
//   - Long timeouts are refused by macOS (EINVAL), and a wait may end with ETIMEDOUT there.
//
// EVFILT_USER carries the wake-up. It is level-triggered: a wait that does not block sees it and leaves it. OpenBSD
// before 7.8 and NetBSD before 10 do not have it: there a pipe takes its place, found out when the poller is made.
#include <fcntl.h>
#include <sys/event.h>
#include <time.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/sched/arch/last_error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

namespace tuza::net {
namespace {

constexpr std::size_t kEventsMax = 128;
constexpr std::int64_t kTimeoutMaxS = 1'000'000;  // macOS refuses more
// The wake-up's cookie. No descriptor has it: its index is out of range.
constexpr std::uint64_t kWakeCookie = ~std::uint64_t{0};
constexpr int kWakeIdent = 1;  // of EVFILT_USER, whose identifiers are not descriptors

using Udata = decltype(std::declval<struct kevent>().udata);
static_assert(sizeof(Udata) == sizeof(std::uint64_t), "a cookie must fit into an event");

Udata udata_of(std::uint64_t cookie) { return std::bit_cast<Udata>(cookie); }
std::uint64_t cookie_of(Udata udata) { return std::bit_cast<std::uint64_t>(udata); }

// One change; 0 or -errno.
long change(int kq, int ident, int filter, unsigned flags, unsigned fflags, std::uint64_t cookie) {
  struct kevent event{};
  event.ident = static_cast<decltype(event.ident)>(ident);
  event.filter = static_cast<decltype(event.filter)>(filter);
  event.flags = static_cast<decltype(event.flags)>(flags);
  event.fflags = static_cast<decltype(event.fflags)>(fflags);
  event.udata = udata_of(cookie);
  if (::kevent(kq, &event, 1, nullptr, 0, nullptr) == 0) return 0;
  const int error = last_error();
  return error == EINTR ? 0 : -error;
}

void close_if_open(int fd) {
  if (fd >= 0) ::close(fd);
}

}  // namespace

struct Poller::State {
  // An event that the kernel does not report.
  struct Ended {
    const std::uint64_t cookie;
    Ended* next;
  };

  ~State() {
    for (const int fd : {kq, wake_read, wake_write}) close_if_open(fd);
    for (const Ended* one = ended; one != nullptr;) delete std::exchange(one, one->next);
  }
  long open();
  long watch(int fd, int filter, std::uint64_t cookie);
  void put_ended(Ended* one);
  std::size_t take_ended(std::span<PollEvent> into);
  long make_wake();
  void wake();
  long trigger_wake() const;
  void end_wake() const;

  int kq = -1;
  // The pipe, where the system has no EVFILT_USER; otherwise -1.
  int wake_read = -1;
  int wake_write = -1;
  std::atomic<bool> wake_pending{false};
  // A stack, which is taken as a whole: a goroutine that adds to it may be suspended at any point, and holds no lock. Whoever
  // takes it acquires what put_ended() released. No wait misses it: it is filled before wake(), whose exchange of wake_pending
  // either triggers, or comes before the waiter's, which acquires it; the wait after that one finds it.
  std::atomic<Ended*> ended{nullptr};
};

long Poller::State::open() {
  kq = ::kqueue();
  if (kq < 0) return -last_error();
  ::fcntl(kq, F_SETFD, FD_CLOEXEC);
  if (const long error = make_wake(); error != 0) return error;
  struct kevent none{};
  const struct timespec at_once{};
  const int n = ::kevent(kq, nullptr, 0, &none, 1, &at_once);
  return n >= 0 || last_error() == EINTR ? 0 : -last_error();
}

// 0 or -errno.
long Poller::State::watch(int fd, int filter, std::uint64_t cookie) {
  const long error = change(kq, fd, filter, EV_ADD | EV_CLEAR, 0, cookie);
  // EBADF, too, as the number is registered for reading already, and is open.
  if (error != -EPIPE && (error != -EBADF || filter != EVFILT_WRITE)) return error;
  auto* const one = new (std::nothrow) Ended{cookie, nullptr};
  if (one == nullptr) return -ENOMEM;
  put_ended(one);
  wake();  // a thread that waits in the kernel has not seen it
  return 0;
}

void Poller::State::put_ended(Ended* one) {
  one->next = ended.load(std::memory_order_relaxed);
  while (!ended.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

std::size_t Poller::State::take_ended(std::span<PollEvent> into) {
  if (ended.load(std::memory_order_relaxed) == nullptr) return 0;
  std::size_t count = 0;
  for (Ended* rest = ended.exchange(nullptr, std::memory_order_acquire); rest != nullptr;) {
    Ended* const one = std::exchange(rest, rest->next);
    if (count == into.size()) {
      put_ended(one);
      continue;
    }
    into[count++] = {.cookie = one->cookie, .readable = true, .writable = true, .hung_up = true};
    delete one;
  }
  return count;
}

long Poller::State::make_wake() {
#if defined(EVFILT_USER)
  if (change(kq, kWakeIdent, EVFILT_USER, EV_ADD, 0, kWakeCookie) == 0) return 0;
#endif
  std::array<int, 2> ends{-1, -1};
  if (::pipe(ends.data()) != 0) return -last_error();
  wake_read = ends[0];
  wake_write = ends[1];
  for (const int fd : ends) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return -last_error();
  }
  return change(kq, wake_read, EVFILT_READ, EV_ADD, 0, kWakeCookie);
}

void Poller::State::wake() {
  if (wake_pending.exchange(true, std::memory_order_acq_rel)) return;
  if (trigger_wake() == 0) return;
  wake_pending.store(false, std::memory_order_release);  // the next wake-up tries again
}

// 0 or -errno.
long Poller::State::trigger_wake() const {
  if (wake_write < 0) {
#if defined(EVFILT_USER)
    return change(kq, kWakeIdent, EVFILT_USER, EV_ENABLE, NOTE_TRIGGER, kWakeCookie);
#endif
  }
  const char one = 1;
  return ::write(wake_write, &one, 1) == 1 || last_error() == EAGAIN ? 0 : -last_error();
}

// A disabled user event stays triggered, and is not reported. The next wake() enables it.
void Poller::State::end_wake() const {
  if (wake_read < 0) {
#if defined(EVFILT_USER)
    change(kq, kWakeIdent, EVFILT_USER, EV_DISABLE, 0, kWakeCookie);
#endif
    return;
  }
  std::array<char, 16> bytes;
  while (::read(wake_read, bytes.data(), bytes.size()) > 0) {
  }
}

Poller::Poller(long& error) : state_(std::make_unique<State>()) { error = state_->open(); }
Poller::~Poller() = default;

long Poller::add(int fd, std::uint64_t cookie) {
  if (const long error = add_reader(fd, cookie); error != 0) return error;
  const long error = watch_writes(fd, cookie);
  if (error != 0) remove(fd);
  return error;
}

long Poller::add_reader(int fd, std::uint64_t cookie) { return state_->watch(fd, EVFILT_READ, cookie); }

long Poller::watch_writes(int fd, std::uint64_t cookie) { return state_->watch(fd, EVFILT_WRITE, cookie); }

void Poller::remove(int fd) {
  for (const int filter : {EVFILT_READ, EVFILT_WRITE}) change(state_->kq, fd, filter, EV_DELETE, 0, 0);
}

// No event reports urgent data. (A look at the socket would not tell behind unread bytes.)
bool Poller::has_ended(int) { return true; }

std::size_t Poller::wait(std::int64_t timeout_ns, std::span<PollEvent> into) {
  if (const std::size_t count = state_->take_ended(into); count > 0) return count;
  std::array<struct kevent, kEventsMax> events;
  struct timespec time{};
  if (timeout_ns > 0) {
    time.tv_sec = static_cast<time_t>(std::min(timeout_ns / 1'000'000'000, kTimeoutMaxS));
    time.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  }
  const int n =
      ::kevent(state_->kq, nullptr, 0, events.data(), static_cast<int>(std::min(into.size(), kEventsMax)),
               timeout_ns < 0 ? nullptr : &time);
  if (n < 0) {
    if (const int error = last_error(); error != EINTR && error != ETIMEDOUT)
      refused("kevent", -error, timeout_ns);
    return 0;
  }
  std::size_t count = 0;
  for (const struct kevent& event : std::span(events).first(static_cast<std::size_t>(n))) {
    const std::uint64_t cookie = cookie_of(event.udata);
    if (cookie == kWakeCookie) {
      // The wake-up is for a blocking thread; a thread that polls without blocking leaves it.
      if (timeout_ns == 0) continue;
      state_->end_wake();
      // As in poller_epoll.cpp: the exchange comes after the wake-up has been cleared, and reads what the waker wrote.
      state_->wake_pending.exchange(false, std::memory_order_acq_rel);
      continue;
    }
    const bool ended = (event.flags & (EV_EOF | EV_ERROR)) != 0;
    const bool of_the_peer =
        event.filter == EVFILT_READ || event.fflags != 0 || (event.flags & EV_ERROR) != 0;
    into[count++] = PollEvent{.cookie = cookie,
                              .readable = ended || event.filter == EVFILT_READ,
                              .writable = ended || event.filter == EVFILT_WRITE,
                              .hung_up = ended && of_the_peer};
  }
  return count;
}

void Poller::wake() { state_->wake(); }

}  // namespace tuza::net
