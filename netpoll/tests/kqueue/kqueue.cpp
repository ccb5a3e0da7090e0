// kqueue() and kevent() for tests on Linux. What they promise is what the manual pages of FreeBSD and macOS promise; a
// test in kqueue_test.cpp for each sentence shows that these do, too.
//
// Linux does not tell when a number is closed, and keeps the registration where the file stays open under another one. So each
// registration remembers its file, and what a number reports that is closed, or another file by now, is dropped.
//
// A kqueue is an epoll instance that watches two others, one for each filter, and an eventfd for the user event. Events
// of the two directions are then as independent as those of a kqueue: one registration for both would report room to
// write whenever data arrives, and hide from the tests what real systems do not report.
//
// Not imitated: `fflags` with the socket's error (on Linux, asking takes the error away), filters other than these
// three, flags other than these, and fork: a child has the parent's kqueue, where a real one has none. Files without an inode of
// their own (eventfd) are taken for one another if they have the same number in turn.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuza/netpoll/tests/kqueue/kqueue_faults.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/arch/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace tuza::net::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> g_has_user_events{true};
struct Refusal {
  std::atomic<int> error{0};
  std::atomic<int> only{0};
  std::atomic<int> calls{0};

  // The errno with which this call fails, or 0.
  int next() {
    const int number = ++calls;
    return only == 0 || only == number ? error.load() : 0;
  }
};
Refusal g_refused_kqueue;
Refusal g_refused_change;
Refusal g_refused_wait;
std::atomic<const std::function<void()>*> g_before_change{nullptr};
std::atomic<int> g_changes{0};

Refusal& refused(std::string_view call) {
  return call == "kqueue" ? g_refused_kqueue : call == "change" ? g_refused_change : g_refused_wait;
}

// Not through libc: ThreadSanitizer would report a race with tests that look at all descriptors.
template <class... Args>
int invoke(long call, Args... args) {
  return static_cast<int>(sys::invoke(call, args...));
}

// Which file a number stands for.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;  // 0: no file

  static FileIdentity of(int fd) {
    struct stat info{};
    if (invoke(SYS_fstat, fd, &info) != 0) return {};
    return {info.st_dev, info.st_ino};
  }
  bool operator==(const FileIdentity&) const = default;
};

// One registration.
struct Knote {
  std::uintptr_t ident;
  void* udata;
  FileIdentity file{};  // of a descriptor
};

struct UserEvent {
  Knote knote{};
  bool clears = false;
  bool enabled = true;
  bool triggered = false;
  [[nodiscard]] bool active() const { return enabled && triggered; }
};

// Of a TCP connection whose sending side has been shut down.
bool own_side_has_ended(int fd) {
  struct tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_FIN_WAIT2 ||
         info.tcpi_state == TCP_CLOSING || info.tcpi_state == TCP_LAST_ACK;
}

// The kernel's own, so_error, is read without being cleared. Here only a reset shows, by the state.
unsigned error_of(int fd) {
  struct tcp_info info{};
  socklen_t size = sizeof info;
  const bool is_tcp = ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return is_tcp && info.tcpi_state == TCP_CLOSE ? ECONNRESET : 0;
}

bool is_writing_end_of_a_pipe(int fd) {
  struct stat info{};
  return invoke(SYS_fstat, fd, &info) == 0 && S_ISFIFO(info.st_mode) &&
         (invoke(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
}

// Of a pipe's writing end.
bool readers_have_gone(int fd) {
  struct pollfd one{fd, 0, 0};
  struct timespec now{};
  return invoke(SYS_ppoll, &one, 1, &now, nullptr, 0) == 1 && (one.revents & POLLERR) != 0;
}

class Kqueue {
 public:
  explicit Kqueue(int number) : number_(number) {
    for (const int fd : {reads_, writes_, user_}) watch_inner(fd, EPOLL_CTL_ADD);
  }
  ~Kqueue() {
    for (const int fd : {reads_, writes_, user_}) {
      if (fd >= 0) ::close(fd);
    }
  }
  Kqueue(const Kqueue&) = delete;
  Kqueue& operator=(const Kqueue&) = delete;

  [[nodiscard]] bool made() const { return reads_ >= 0 && writes_ >= 0 && user_ >= 0; }
  // Whether its number still is this kqueue: Linux does not tell when a number is closed.
  [[nodiscard]] bool is_open() const { return watch_inner(reads_, EPOLL_CTL_MOD) == 0; }

  // 0 or an errno.
  int apply(const struct kevent& change) {
    if (change.filter == EVFILT_USER) return apply_user(change);
    if (change.filter != EVFILT_READ && change.filter != EVFILT_WRITE) return EINVAL;
    const int inner = change.filter == EVFILT_READ ? reads_ : writes_;
    const int fd = static_cast<int>(change.ident);
    if (is_writing_end_of_a_pipe(fd)) {
      // As FreeBSD, the strictest: a filter of the wrong end is accepted, and never reports anything.
      if (change.filter == EVFILT_READ) return 0;
      if ((change.flags & EV_ADD) != 0 && readers_have_gone(fd)) return EPIPE;
    }
    if ((change.flags & EV_DELETE) != 0)
      return ::epoll_ctl(inner, EPOLL_CTL_DEL, fd, nullptr) == 0 ? 0 : last_error();
    const std::scoped_lock lock(mutex_);
    knotes_.push_back({change.ident, change.udata, FileIdentity::of(fd)});
    struct epoll_event event{};
    event.events = change.filter == EVFILT_READ ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;
    if ((change.flags & EV_CLEAR) != 0) event.events |= EPOLLET;
    event.data.ptr = &knotes_.back();
    if ((change.flags & EV_ADD) != 0 && ::epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event) == 0) return 0;
    if ((change.flags & EV_ADD) != 0 && last_error() != EEXIST) return last_error();
    return ::epoll_ctl(inner, EPOLL_CTL_MOD, fd, &event) == 0 ? 0 : last_error();
  }

  // Linux holds a file that is closed during such a call until the call returns (poll/descriptor.cpp): its peer would wait for
  // the end of the stream. A real kqueue does not.
  static constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(50);

  // The number of events, or -1.
  int collect(std::span<struct kevent> into, const struct timespec* timeout) {
    const std::optional<Clock::time_point> end =
        timeout == nullptr ? std::nullopt
                           : std::optional(Clock::now() + std::chrono::seconds(timeout->tv_sec) +
                                           std::chrono::nanoseconds(timeout->tv_nsec));
    for (;;) {
      std::size_t n = take_user(into);
      // The directions take turns at being first, so that neither starves where there is little room.
      const bool reads_first = turn_.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
      n += take(reads_first, into.subspan(n));
      n += take(!reads_first, into.subspan(n));
      if (n > 0) return static_cast<int>(n);
      std::chrono::nanoseconds wait = kLook;
      if (end) wait = std::min<std::chrono::nanoseconds>(wait, *end - Clock::now());
      if (wait.count() <= 0) return 0;
      const struct timespec left{.tv_sec = 0, .tv_nsec = wait.count()};
      struct epoll_event any{};
      if (::epoll_pwait2(number_, &any, 1, &left, nullptr) < 0) return -1;
    }
  }

 private:
  // Not through libc: the number may be somebody else's by now, and ThreadSanitizer would report a race with its maker.
  int watch_inner(int fd, int operation) const {
    struct epoll_event event{};
    event.events = EPOLLIN;
    return invoke(SYS_epoll_ctl, number_, operation, fd, &event);
  }

  int apply_user(const struct kevent& change) {
    const std::scoped_lock lock(mutex_);
    if ((change.flags & EV_ADD) != 0) {
      if (!has_user_) return EINVAL;
      if (!user_event_) user_event_.emplace();
      user_event_->knote = {change.ident, change.udata};
      user_event_->clears = (change.flags & EV_CLEAR) != 0;
    }
    if (!user_event_ || user_event_->knote.ident != change.ident) return ENOENT;
    if ((change.flags & EV_DISABLE) != 0) user_event_->enabled = false;
    if ((change.flags & EV_ENABLE) != 0) user_event_->enabled = true;
    if ((change.fflags & NOTE_TRIGGER) != 0) user_event_->triggered = true;
    show_user();
    return 0;
  }

  // The eventfd has a value while the user event is active. With mutex_ held.
  void show_user() {
    std::uint64_t value = 1;
    if (user_event_->active()) {
      (void)!::write(user_, &value, sizeof value);
    } else {
      (void)!::read(user_, &value, sizeof value);
    }
  }

  std::size_t take_user(std::span<struct kevent> into) {
    const std::scoped_lock lock(mutex_);
    if (into.empty() || !user_event_ || !user_event_->active()) return 0;
    into[0] = {};
    into[0].ident = user_event_->knote.ident;
    into[0].filter = EVFILT_USER;
    into[0].udata = user_event_->knote.udata;
    if (user_event_->clears) user_event_->triggered = false;
    show_user();
    return 1;
  }

  std::size_t take(bool reads, std::span<struct kevent> into) {
    if (into.empty()) return 0;
    std::array<struct epoll_event, 128> found;  // no memory: tests count allocations
    const int n = ::epoll_wait(reads ? reads_ : writes_, found.data(),
                               static_cast<int>(std::min(into.size(), found.size())), 0);
    const std::scoped_lock lock(mutex_);
    std::size_t count = 0;
    for (const auto& [events, data] : std::span(found).first(static_cast<std::size_t>(std::max(n, 0)))) {
      const Knote& knote = *static_cast<const Knote*>(data.ptr);
      const int fd = static_cast<int>(knote.ident);
      if (FileIdentity::of(fd) != knote.file) continue;
      struct kevent& event = into[count++];
      event = {};
      event.ident = knote.ident;
      event.filter = reads ? EVFILT_READ : EVFILT_WRITE;
      const bool ended =
          (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 || (!reads && own_side_has_ended(fd));
      event.flags = ended ? EV_EOF : 0;
      if (ended) event.fflags = error_of(fd);
      event.udata = knote.udata;
      int bytes = 0;
      if (reads && ::ioctl(fd, FIONREAD, &bytes) == 0) event.data = bytes;
    }
    return count;
  }

  const int number_;  // of the epoll instance that watches the others
  const int reads_ = invoke(SYS_epoll_create1, EPOLL_CLOEXEC);
  const int writes_ = invoke(SYS_epoll_create1, EPOLL_CLOEXEC);
  const int user_ = invoke(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  const bool has_user_ = g_has_user_events;
  std::atomic<unsigned> turn_{0};
  std::mutex mutex_;
  std::deque<Knote>
      knotes_;  // guarded by mutex_; all that ever were: an event of an old one may be under way
  std::optional<UserEvent> user_event_;  // guarded by mutex_
};

std::mutex g_mutex;
std::map<int, std::shared_ptr<Kqueue>> g_kqueues;  // guarded by g_mutex

std::shared_ptr<Kqueue> find(int number) {
  const std::scoped_lock lock(g_mutex);
  const auto found = g_kqueues.find(number);
  return found == g_kqueues.end() ? nullptr : found->second;
}

int fail(int error) {
  set_last_error(error);
  return -1;
}

}  // namespace

namespace kqueue_faults {

void has_user_events(bool yes) { g_has_user_events = yes; }
int changes() { return g_changes; }
Refuse::Refuse(std::string_view call, int error, int only) : call_(call) {
  refused(call).calls = 0;
  refused(call).only = only;
  refused(call).error = error;
}
Refuse::~Refuse() { refused(call_).error = 0; }
BeforeChange::BeforeChange(std::function<void()> call) : call_(std::move(call)) { g_before_change = &call_; }
BeforeChange::~BeforeChange() { g_before_change = nullptr; }

}  // namespace kqueue_faults
}  // namespace tuza::net::testing

extern "C" {

int kqueue() {
  using namespace tuza::net::testing;
  if (const int error = g_refused_kqueue.next(); error != 0) return fail(error);
  const std::scoped_lock lock(g_mutex);
  std::erase_if(g_kqueues, [](const auto& entry) { return !entry.second->is_open(); });
  const int number = invoke(SYS_epoll_create1, 0);
  if (number < 0) return fail(-number);
  const auto made = std::make_shared<Kqueue>(number);
  if (!made->made()) {
    ::close(number);
    return fail(EMFILE);
  }
  g_kqueues[number] = made;
  return number;
}

int kevent(int kq, const struct kevent* changes, int changes_size, struct kevent* events, int events_size,
           const struct timespec* timeout) {
  using namespace tuza::net::testing;
  const std::shared_ptr<Kqueue> queue = find(kq);
  if (queue == nullptr) return fail(EBADF);
  int reports = 0;
  for (int i = 0; i < changes_size; ++i) {
    // A change that the call itself makes is not announced.
    if (const auto* const call = g_before_change.exchange(nullptr); call != nullptr) {
      (*call)();
      g_before_change = call;
    }
    if (changes[i].filter == EVFILT_READ || changes[i].filter == EVFILT_WRITE) ++g_changes;
    const int refusal = g_refused_change.next();
    const int error = refusal != 0 ? refusal : queue->apply(changes[i]);
    if (error == 0 && (changes[i].flags & EV_RECEIPT) == 0) continue;
    if (reports == events_size) return error == 0 ? reports : fail(error);
    events[reports] = changes[i];
    events[reports].flags = EV_ERROR;
    events[reports].data = error;
    ++reports;
  }
  if (reports > 0 || events_size == 0) return reports;
  if (const int error = g_refused_wait.next(); error != 0) return fail(error);
  return queue->collect({events, static_cast<std::size_t>(events_size)}, timeout);
}

}  // extern "C"
