#include <tuza/sched/rt/poll_role.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/clock.h>
#include <tuza/sched/rt/idle.h>
#include <tuza/sched/rt/ready.h>
#include <tuza/sched/rt/sched.h>

namespace tuza {
namespace rt {

const char* name(PollRole::Holder holder) {
  switch (holder) {
    case PollRole::Holder::kNobody: return "none";
    case PollRole::Holder::kM: return "M";
    case PollRole::Holder::kSourceThread: return "thread";
  }
  return "corrupt";
}

void poll_role_returned(GList&& ready) {
  Sched* sched = active();
  TUZA_CHECK(sched != nullptr && sched->poll.holder() == PollRole::Holder::kSourceThread);
  sched->poll.polled(now_ns());
  inject(*sched, std::move(ready));
  sched->poll.give_back();  // only now: who finds the role free knows that nothing is on its way
  // An M that went idle while the role was away sleeps on its note: let one come and take the role.
  if (sched->idle_ps.count(std::memory_order_seq_cst) > 0) nudge_idle_m(*sched);
}

}  // namespace rt

bool attach_io_source(IoSource& source) {
  const rt::ExternalEntry entry;
  return entry.sched() != nullptr && entry.sched()->poll.attach(source);
}

}  // namespace tuza
