#include <tuza/sched/sync/semaphore.h>

#include <tuza/sched/park.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/g_list.h>
#include <tuza/sched/rt/handoff.h>

#include <mutex>

namespace tuza {

Semaphore::~Semaphore() {
  if (!waiters_.empty()) rt::fatal("Semaphore destroyed while goroutines wait for it");
}

bool Semaphore::try_acquire() {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the mutex
  const std::scoped_lock lock(mutex_);
  if (permits_ <= 0) return false;
  --permits_;
  return true;
}

bool Semaphore::commit_acquire(rt::G* g, void* self) {
  auto& semaphore = *static_cast<Semaphore*>(self);
  const std::scoped_lock lock(semaphore.mutex_);
  if (semaphore.permits_ > 0) {
    --semaphore.permits_;
    return false;  // it has one: no need to park
  }
  semaphore.waiters_.push_back(g);
  return true;
}

void Semaphore::acquire() {
  rt::parking_point();
  if (try_acquire()) return;
  rt::park(&Semaphore::commit_acquire, this, WaitReason::kSemaphore);
}

void Semaphore::release() {
  const rt::Enter rt;
  rt::G* next = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    next = waiters_.pop_front();
    if (next == nullptr) ++permits_;
  }
  if (next != nullptr) rt::ready(next);
}

}  // namespace tuza
