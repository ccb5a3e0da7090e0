#include <tuza/sched/sync/wait_group.h>

#include <tuza/sched/park.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/g_list.h>
#include <tuza/sched/rt/handoff.h>

#include <mutex>

namespace tuza {
namespace {

std::int32_t counter_of(std::uint64_t state) { return static_cast<std::int32_t>(state >> 32); }
std::uint32_t waiters_of(std::uint64_t state) { return static_cast<std::uint32_t>(state); }

}  // namespace

WaitGroup::~WaitGroup() {
  if (waiters_of(state_.load(std::memory_order_relaxed)) != 0) {
    rt::fatal("WaitGroup destroyed while goroutines wait for it");
  }
}

void WaitGroup::add(std::int32_t delta) {
  const auto change = static_cast<std::uint64_t>(static_cast<std::int64_t>(delta)) << 32;
  // release: the work before done(); acquire: whoever brings it to zero passes all of that on to the waiters.
  const std::uint64_t before = state_.fetch_add(change, std::memory_order_acq_rel);
  const std::uint64_t now = before + change;
  if (counter_of(now) < 0) rt::fatal("WaitGroup: more done() than add()");
  // Without waiters the write above was the last access: a wait() that sees zero may return, and the group
  // be destroyed, at once. With waiters the group lives until they have been let go.
  if (counter_of(now) == 0 && waiters_of(now) != 0) release_waiters();
}

void WaitGroup::release_waiters() {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the mutex
  rt::GList released;
  {
    const std::scoped_lock lock(mutex_);
    released = std::move(waiters_);
    state_.fetch_sub(released.size(), std::memory_order_relaxed);
  }
  while (rt::G* g = released.pop_front()) rt::ready(g);
}

bool WaitGroup::commit_wait(rt::G* g, void* self) {
  auto& group = *static_cast<WaitGroup*>(self);
  const std::scoped_lock lock(group.mutex_);
  // Counts itself and learns, in one step, whether the counter has come to zero meanwhile: then nobody
  // would come to release it. Otherwise whoever brings it to zero sees this waiter, and finds it in the
  // list because the mutex is held until it is there.
  const std::uint64_t before = group.state_.fetch_add(1, std::memory_order_acquire);
  if (counter_of(before) == 0) {
    group.state_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  group.waiters_.push_back(g);
  return true;
}

void WaitGroup::wait() {
  rt::parking_point();
  if (counter_of(state_.load(std::memory_order_acquire)) == 0) return;
  rt::park(&WaitGroup::commit_wait, this, WaitReason::kWaitGroup);
}

}  // namespace tuza
