// Futexes of mutexes and condition variables: a table of queues, by the hash of the word's address. Each waiter has a mutex
// and a condition variable of its own, on its stack.
//
// Why no wake-up is lost: the waker has changed the word before it takes the queue's lock, and the waiter reads the word under
// that lock. So it sees the change, or is in the queue when the waker looks.
//
// Signals are blocked while a queue's lock is held, which has two effects. A handler that waits or wakes never finds the lock
// held by the thread that it has interrupted. And no thread is suspended with the lock (rt/slice/preempt_signal.h), which
// sysmon needs to resume it. They are not blocked during the wait itself. POSIX does not promise that a handler may wait for a
// condition variable; it works where waits for different variables share no state of the thread: in glibc, at least.
//
// Rejected: one condition variable for each queue. A handler would have to take the queue's mutex while the thread under it
// waits with that very mutex.
#include <tuza/sched/rt/base/futex.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <tuza/sched/detail/sanitizers.h>
#include <tuza/sched/detail/thread_annotations.h>
#include <tuza/sched/rt/base/clock.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace tuza::rt {
namespace {

// Condition variables on the monotonic clock. macOS has none, but waits for a time instead of until one.
#if defined(__APPLE__)
void init(pthread_cond_t& condition) { pthread_cond_init(&condition, nullptr); }

int wait_until(pthread_cond_t& condition, pthread_mutex_t& mutex, std::int64_t end_ns) {
  const std::int64_t ns = std::max<std::int64_t>(end_ns - now_ns(), 0);
  const struct timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  return pthread_cond_timedwait_relative_np(&condition, &mutex, &time);
}
#else
void init(pthread_cond_t& condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

// FreeBSD's headers say that the mutex must be locked. It is, in all calls.
int wait_until(pthread_cond_t& condition, pthread_mutex_t& mutex,
               std::int64_t end_ns) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  const struct timespec end{.tv_sec = end_ns / 1'000'000'000, .tv_nsec = end_ns % 1'000'000'000};
  return pthread_cond_timedwait(&condition, &mutex, &end);
}
#endif

class Waiter {
 public:
  explicit Waiter(const void* word) : word_(word) { init(wakes_); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    pthread_cond_destroy(&wakes_);
    pthread_mutex_destroy(&mutex_);
  }

  [[nodiscard]] const void* word() const { return word_; }

  // The waiter's memory may be gone afterwards.
  void wake() {
    pthread_mutex_lock(&mutex_);
    woken_ = true;
    pthread_cond_signal(&wakes_);
    pthread_mutex_unlock(&mutex_);
  }

  // False: not woken by `end_ns`, on the monotonic clock; negative: no limit.
  bool sleep(std::int64_t end_ns) {
    pthread_mutex_lock(&mutex_);
    for (int error = 0; !woken_ && error != ETIMEDOUT;) {
      error = end_ns < 0 ? pthread_cond_wait(&wakes_, &mutex_) : wait_until(wakes_, mutex_, end_ns);
    }
    const bool woken = woken_;
    pthread_mutex_unlock(&mutex_);
    return woken;
  }

  Waiter* next = nullptr;  // guarded by the queue's lock, as `queued`
  bool queued = false;

 private:
  const void* const word_;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wakes_;
  bool woken_ = false;  // guarded by mutex_
};

struct alignas(64) Queue {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Waiter* first = nullptr;  // the longest waiting one
};

constexpr std::size_t kQueues = 256;
constinit std::array<Queue, kQueues> g_queues;

Queue& queue_of(const void* word) {
  // Fibonacci hashing: neighbouring words get different queues.
  const std::uint64_t mixed =
      reinterpret_cast<std::uintptr_t>(word) / sizeof(std::uint32_t) * 0x9E3779B97F4A7C15;
  return g_queues[mixed >> 56];
}
static_assert(kQueues == 1 << 8, "the uppermost eight bits of the product are an index");

// The child of a fork() has none of the threads that wait or hold a lock.
void forget_all() {
  for (Queue& queue : g_queues) {
    queue.mutex = PTHREAD_MUTEX_INITIALIZER;
    queue.first = nullptr;
  }
}
const int g_registered = pthread_atfork(nullptr, nullptr, &forget_all);

class Locked {
 public:
  explicit Locked(Queue& queue) : queue_(queue) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    pthread_mutex_lock(&queue.mutex);
  }
  ~Locked() {
    pthread_mutex_unlock(&queue_.mutex);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Queue& queue_;
  sigset_t before_;
};

void append(Queue& queue, Waiter& waiter) {
  Waiter** end = &queue.first;
  while (*end != nullptr) end = &(*end)->next;
  *end = &waiter;
  waiter.queued = true;
}

void unlink(Waiter** link) {
  Waiter* const waiter = *link;
  *link = std::exchange(waiter->next, nullptr);
  waiter->queued = false;
}

// Takes the waiter out of the queue, unless a waker has done so.
bool withdraw(Queue& queue, Waiter& waiter) {
  const Locked lock(queue);
  if (!waiter.queued) return false;
  Waiter** link = &queue.first;
  while (*link != &waiter) link = &(*link)->next;
  unlink(link);
  return true;
}

}  // namespace

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) {
#if defined(TUZA_TSAN)
  // As on Linux: ThreadSanitizer defers a signal until the thread's next intercepted call.
  constexpr std::int64_t kSignalCheckIntervalNs = 1'000'000'000;
  if (timeout_ns < 0 || timeout_ns > kSignalCheckIntervalNs) timeout_ns = kSignalCheckIntervalNs;
#endif
  // Far enough for every wait, and no overflow.
  constexpr std::int64_t kLongestNs = std::int64_t{1} << 60;
  const std::int64_t end_ns = timeout_ns < 0 ? -1 : now_ns() + std::min(timeout_ns, kLongestNs);
  Queue& queue = queue_of(&word);
  Waiter waiter(&word);
  {
    const Locked lock(queue);
    if (word.load(std::memory_order_seq_cst) != expected) return;
    append(queue, waiter);
  }
  // If a waker has taken it out meanwhile, it will touch the waiter once more.
  if (!waiter.sleep(end_ns) && !withdraw(queue, waiter)) waiter.sleep(-1);
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  Queue& queue = queue_of(&word);
  const Locked lock(queue);
  for (Waiter** link = &queue.first; *link != nullptr && count > 0;) {
    Waiter* const waiter = *link;
    if (waiter->word() != &word) {
      link = &waiter->next;
      continue;
    }
    unlink(link);
    waiter->wake();
    --count;
  }
}

}  // namespace tuza::rt
