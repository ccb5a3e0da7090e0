#include <tuza/sched/time/fake_clock.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/testing/fake_time.h>

namespace tuza::testing {

FakeClock::FakeClock() : began_ns_(0) {
  if (rt::current_g() == nullptr) rt::fatal("a FakeClock needs a goroutine: create it inside tuza::run");
  if (!rt::FakeTime::install()) rt::fatal("a FakeClock already exists");
  began_ns_ = rt::FakeTime::installed()->now_ns();
}

FakeClock::~FakeClock() { rt::FakeTime::installed()->uninstall(); }

std::chrono::steady_clock::time_point FakeClock::now() const {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(rt::FakeTime::installed()->now_ns()));
}

std::chrono::nanoseconds FakeClock::elapsed() const {
  return std::chrono::nanoseconds(rt::FakeTime::installed()->now_ns() - began_ns_);
}

void FakeClock::settle() { rt::FakeTime::installed()->settle(); }

}  // namespace tuza::testing
