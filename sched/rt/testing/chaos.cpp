#include <tuza/sched/rt/testing/chaos.h>

#if defined(TUZA_CHAOS)

#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>

#include <ctime>

#include <atomic>
#include <cstdlib>

namespace tuza::rt::chaos {
namespace {

constexpr std::uint32_t kHandoffEvery = 16;
std::uint64_t g_seed = 0;  // constant after the first runtime has started; 0: not chosen yet
std::uint32_t g_handoff_every = kHandoffEvery;  // average number of leaves per handoff; 0: never

}  // namespace

void choose_seed() {
  const char* every = std::getenv("TUZA_CHAOS_HANDOFF");  // read anew for each runtime
  g_handoff_every =
      every != nullptr ? static_cast<std::uint32_t>(std::strtoul(every, nullptr, 10)) : kHandoffEvery;
  if (g_seed != 0) return;
  if (const char* text = std::getenv("TUZA_CHAOS_SEED")) g_seed = std::strtoull(text, nullptr, 10);
  if (g_seed == 0) g_seed = static_cast<std::uint64_t>(now_ns()) % 1'000'000'007;
  Line() << "tuza: chaos build, TUZA_CHAOS_SEED=" << g_seed << "\n";
}

std::uint64_t seed_of(std::uint32_t id) { return g_seed + id; }

bool diverts_to_grq(Sched& sched, M* m, G* g) {
  switch (m->random.below(4)) {
    case 0: sched.grq[static_cast<Level>(m->random.below(kLevels))].push(g); return true;
    case 1: sched.grq[static_cast<Level>(m->random.below(kLevels))].push_front(g); return true;
    default: return false;
  }
}

bool migrates(M* m, G* g) {
  if (g->last_m != m || g->locked_m != nullptr) return false;
  M* other = m->sched->idle_ms.pop();
  if (other == nullptr) return false;
  other->handed = g;
  wake_with_p(other, release_p(m), false);
  return true;
}

void before_leave(M* m) {
  if (m->p == nullptr || g_handoff_every == 0 || m->random.below(g_handoff_every) != 0) return;
  hand_off_own_p(m);
}

void dawdle() {
  static std::atomic<std::uint64_t> calls{0};
  Random random(g_seed + calls.fetch_add(1, std::memory_order_relaxed));
  if (random.below(8) != 0) return;
  const timespec some{.tv_sec = 0, .tv_nsec = 1'000'000 * (1 + random.below(8))};
  sys::nanosleep(&some, nullptr);
}

}  // namespace tuza::rt::chaos

#endif
