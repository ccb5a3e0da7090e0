#include <tuza/sched/sync/mutex.h>

#include <tuza/sched/park.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/g_list.h>
#include <tuza/sched/rt/handoff.h>

#include <mutex>

namespace tuza {

Mutex::~Mutex() {
  if (!waiters_.empty()) rt::fatal("Mutex destroyed while goroutines wait for it");
}

bool Mutex::commit_lock(rt::G* g, void* self) {
  auto& mutex = *static_cast<Mutex*>(self);
  const std::scoped_lock lock(mutex.mutex_);
  for (;;) {
    std::uint32_t seen = mutex.state_.load(std::memory_order_relaxed);
    // Announcing the waiter and taking a lock that has just become free are both one step, so unlock()
    // either sees the announcement or happened before it.
    const std::uint32_t wanted = seen == kFree ? kLocked : kLockedWithWaiters;
    if (!mutex.state_.compare_exchange_strong(seen, wanted, std::memory_order_acquire)) continue;
    if (wanted == kLocked) return false;  // the lock is ours: no need to park
    mutex.waiters_.push_back(g);
    return true;
  }
}

void Mutex::lock_contended() {
  rt::parking_point();
  rt::park(&Mutex::commit_lock, this, WaitReason::kMutex);
}

void Mutex::unlock_contended() {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the inner mutex
  rt::G* next = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (state_.load(std::memory_order_relaxed) != kLockedWithWaiters) {
      rt::fatal("unlock of a Mutex that is not locked");
    }
    next = waiters_.pop_front();
    // The lock passes to `next` without ever being free. release: to those who find it kLocked and queue up
    // the order does not matter, `next` gets it from ready().
    if (waiters_.empty()) state_.store(kLocked, std::memory_order_release);
  }
  rt::ready(next);
}

}  // namespace tuza
