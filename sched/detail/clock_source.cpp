#include <tuza/sched/detail/clock_source.h>

#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/testing/fake_time.h>
#include <tuza/sched/time/clock.h>

namespace tuza {
namespace rt {

std::int64_t clock_now_ns() {
  const FakeTime* fake = FakeTime::installed();
  return fake == nullptr ? now_ns() : fake->now_ns();
}

std::int64_t clock_coarse_ns() {
  const FakeTime* fake = FakeTime::installed();
  return fake == nullptr ? coarse_now_ns() : fake->now_ns();
}

bool clock_is_fake() { return FakeTime::installed() != nullptr; }

Armed clock_arm(Timer& timer, std::int64_t when_ns) {
  FakeTime* fake = FakeTime::installed();
  return fake == nullptr ? timer_arm(timer, when_ns) : fake->arm(timer, when_ns);
}

bool clock_stop(Timer& timer) { return timer_stop(timer); }  // the timer knows the heap it is in

}  // namespace rt

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(rt::clock_now_ns()));
}

}  // namespace tuza
