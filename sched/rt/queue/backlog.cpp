#include <tuza/sched/rt/queue/backlog.h>

#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

bool proven(const G& g) { return g.waits_begun >= Backlog::kProvenWaits; }

}  // namespace

void update_backlog(Sched& sched, std::int64_t now) {
  GlobalQueue& latecomers = sched.grq[Level::kLatecomer];
  GlobalQueue& woken = sched.grq[Level::kWoken];
  switch (sched.backlog.scan(latecomers.size(), now)) {
    case Backlog::Do::kNothing: return;
    case Backlog::Do::kFavourProven: woken.move_to(latecomers, &proven); break;
    case Backlog::Do::kJoin: latecomers.move_to(woken, [](const G& g) { return !proven(g); }); break;
    case Backlog::Do::kEnd: latecomers.move_to(woken, [](const G&) { return true; }); break;
  }
  // Some M may have read the sizes one after another while deciding whether to sleep, and seen no goroutine.
  wake_one(sched);
}

void favour_proven(Sched& sched, P& p) {
  GlobalQueue& latecomers = sched.grq[Level::kLatecomer];
  RunQueue::Owner woken(p.woken);
  for (std::uint32_t n = p.woken.size(); n > 0; --n) {
    G* g = woken.pop();
    if (g == nullptr) break;  // thieves have taken the rest
    if (proven(*g) || !woken.push(g)) latecomers.push(g);
  }
}

}  // namespace tuza::rt
