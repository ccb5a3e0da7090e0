#include <tuza/sched/rt/idle/ended_threads.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/idle/join_thread.h>

namespace tuza::rt {
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
    const bool joined = try_join(thread);
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
