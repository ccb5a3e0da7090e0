// Marks the goroutine for sysmon (rt/slice/slices.cpp), and checks at the end whether the P is gone.
#include <tuza/sched/blocking.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>

namespace tuza {

BlockingCall::BlockingCall(CallLength length) {
  rt::M* m = rt::current_m();
  if (m == nullptr) return;
  rt::G* g = m->current;
  ++g->blocking;
  if (g->blocking != 1) return;
  ++g->calls;
  if (length != CallLength::kLong) return;
  const rt::Enter rt;
  if (rt.m()->p != nullptr) rt::hand_off_own_p(rt.m());
}

BlockingCall::~BlockingCall() {
  const rt::M* m = rt::current_m();
  if (m == nullptr) return;
  rt::G* g = m->current;
  g->blocking += static_cast<std::uint32_t>(-1);
  if (g->blocking == 0) rt::parking_point();
}

}  // namespace tuza
