#include <tuza/sched/rt/idle/ended_threads.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/mapping.h>

#include <ctime>

namespace tuza::rt {
namespace {

// Returns false if the thread has not terminated by the deadline. Waits in small steps, because the timeout
// of the call refers to the realtime clock, which may be set. (pthread_clockjoin_np() is unknown to the
// ThreadSanitizer of GCC 12.)
bool join_until(pthread_t thread, std::int64_t deadline_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000, kStepNs = 10'000'000;
  while (now_ns() < deadline_ns) {
    struct timespec step{};
    clock_gettime(CLOCK_REALTIME, &step);
    step.tv_nsec += kStepNs;
    step.tv_sec += step.tv_nsec / kSecond;
    step.tv_nsec %= kSecond;
    if (pthread_timedjoin_np(thread, nullptr, &step) == 0) return true;
  }
  return pthread_tryjoin_np(thread, nullptr) == 0;
}

}  // namespace

EndedThreads::EndedThreads() : threads_(static_cast<pthread_t*>(map_pages(sizeof(pthread_t) * kMax))) {
  if (threads_ == nullptr) fatal("no memory for the runtime");
}

EndedThreads::~EndedThreads() { unmap_pages(threads_, sizeof(pthread_t) * kMax); }

void EndedThreads::add_this_thread() {
  const LockGuard lock(mutex_);
  if (closed_ || size_ == kMax) {
    pthread_detach(pthread_self());
  } else {
    threads_[size_++] = pthread_self();
  }
}

// Threads that are added meanwhile go behind the part that is still to be scanned.
std::uint32_t EndedThreads::join_some() {
  RelockableGuard lock(mutex_);
  for (std::uint32_t i = size_; i-- > 0;) {
    const pthread_t thread = threads_[i];
    lock.unlock();  // the C library has locks of its own
    const bool joined = pthread_tryjoin_np(thread, nullptr) == 0;
    lock.lock();
    if (joined) threads_[i] = threads_[--size_];
  }
  return size_;
}

void EndedThreads::join_all(std::int64_t deadline_ns) {
  RelockableGuard lock(mutex_);
  closed_ = true;
  for (; size_ > 0; --size_) {
    const pthread_t thread = threads_[size_ - 1];
    lock.unlock();  // as in join_some(); a closed list does not grow
    if (!join_until(thread, deadline_ns)) pthread_detach(thread);
    lock.lock();
  }
}

}  // namespace tuza::rt
