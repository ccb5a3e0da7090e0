#include <tuza/sched/rt/pile_up.h>

#include <tuza/sched/rt/sched.h>

namespace tuza::rt {

void favour_proven(Sched& sched, P& p) {
  constexpr auto kProven = [](const G& g) { return g.waits_begun >= PileUp::kProvenWaits; };
  GlobalQueue& latecomers = sched.grq[Level::kLatecomer];
  sched.grq[Level::kWoken].move_to(latecomers, kProven);
  RunQueue::Owner woken(p.woken);
  for (std::uint32_t n = p.woken.size(); n > 0; --n) {
    G* g = woken.pop();
    if (g == nullptr) break;  // thieves have taken the rest
    if (kProven(*g) || !woken.push(g)) latecomers.push(g);
  }
}

}  // namespace tuza::rt
