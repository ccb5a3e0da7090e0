#include <tuza/sched/rt/queue/poll_role.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/ready.h>
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

void io_wait_begins() {
  const Enter rt;
  if (P* p = rt.p(); p != nullptr) {
    ++p->io_waits;
  } else if (const M* m = rt.m();
             m != nullptr) {  // the goroutine ran on without a P (rt/slice/handoff.h), and parks now
    m->sched->io_waits_outside.fetch_add(1, std::memory_order_relaxed);
  }
}

void io_wait_ends() {
  const Enter rt;
  const ExternalEntry entry;
  if (entry.sched() != nullptr) entry.sched()->io_waits_ended(rt.p(), 1);
}

void poll_role_returned(GList&& ready) {
  Sched* sched = active();
  TUZA_CHECK(sched != nullptr && sched->poll.holder() == PollRole::Holder::kSourceThread);
  sched->poll.polled(now_ns());
  sched->io_waits_ended(nullptr, ready.size());
  inject(*sched, std::move(ready), Level::kWoken);
  sched->poll.give_back();  // last: a thread that finds the role free knows that nothing is in transit
  // An M that went idle while the source's thread held the role sleeps on its note. Wake one, so that it
  // takes the role.
  if (sched->any_p_idle()) nudge_idle_m(*sched);
}

}  // namespace rt

bool attach_io_source(IoSource& source) {
  const rt::ExternalEntry entry;
  return entry.sched() != nullptr && entry.sched()->poll.attach(source);
}

}  // namespace tuza
