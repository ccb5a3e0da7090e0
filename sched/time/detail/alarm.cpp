#include <tuza/sched/time/detail/alarm.h>

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/enter.h>

namespace tuza::rt {

bool Alarm::arm(std::int64_t when_ns) {
  const bool runtime_ended = timer_disarmed(timer_);  // since the last arming: none of its fires is under way
  if (runtime_ended) under_way_ = 0;
  const bool was_armed = armed_;
  armed_ = true;
  switch (clock_arm(timer_, when_ns)) {
    case Armed::kMoved: break;
    case Armed::kAdded:
      if (was_armed && !runtime_ended) ++under_way_;
      break;
    case Armed::kNoRuntime: fatal("timer started outside tuza::run: nothing would fire it");
  }
  return was_armed;
}

bool Alarm::disarm() {
  if (!armed_) return false;
  armed_ = false;
  if (!clock_stop(timer_)) ++under_way_;
  return true;
}

bool Alarm::fires() {
  if (under_way_ > 0) {
    --under_way_;
    return false;
  }
  TUZA_CHECK(armed_);
  armed_ = false;
  return true;
}

Alarm::~Alarm() {
  constexpr int kSpins = 100;
  constexpr std::int64_t kNapNs = 50'000;
  for (int i = 0;; ++i) {
    {
      const Enter rt;
      const LockGuard lock(lock_);
      disarm();
      if (under_way_ == 0 || timer_disarmed(timer_)) return;
    }
    if (i < kSpins) {
      cpu_relax();
    } else {
      std::atomic<std::uint32_t> nobody_wakes{0};
      futex_wait(nobody_wakes, 0, kNapNs);
    }
  }
}

}  // namespace tuza::rt
