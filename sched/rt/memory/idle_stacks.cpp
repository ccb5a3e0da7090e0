#include <tuza/sched/rt/memory/idle_stacks.h>

#include <tuza/sched/rt/memory/page_advice.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>

namespace tuza::rt {
namespace {

constexpr std::uintptr_t kPage = 4096;
// Kept below the stack pointer. This memory has had other users: signal frames lay below the goroutine's
// frames, and the unwinder that prints a parked goroutine runs there.
constexpr std::uintptr_t kMargin = 512;

// False: the goroutine no longer waits, or another thread has pinned it.
bool trim(G& g) {
  if (!g.pin()) return false;
  if (!g.nothing_below.get()) {  // the goroutine is in another wait by now
    g.unpin();
    return true;
  }
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(g.context.sp) - kMargin) & ~(kPage - 1);
  const std::uintptr_t begin = g.stack.low + kPage;  // goexit() keeps its record in the lowest page
  if (end > begin && end < g.stack.top) {
    give_back_pages(reinterpret_cast<void*>(begin), end - begin);
  }
  g.trimmed_since_ns = g.wait_since_ns.get();
  g.unpin();
  return true;
}

}  // namespace

bool IdleStacks::trim_some(Sched& sched, std::int64_t now_ns, std::int64_t after_ns) {
  const std::size_t count = sched.gs.count();
  if (at_ >= count) at_ = 0;
  if (at_ == 0) youngest_ns_ = 0;
  for (std::size_t n = 0; n < kPerCall && at_ < count; ++n) {
    G& g = sched.gs.at(at_++);
    if (g.status.load(std::memory_order_relaxed) != GStatus::kWaiting || !g.nothing_below.get()) continue;
    const std::int64_t since = g.wait_since_ns;
    if (g.trimmed_since_ns == since) continue;
    if (now_ns - since < after_ns || !trim(g)) youngest_ns_ = std::max(youngest_ns_, since);
  }
  return at_ >= count;
}

std::int64_t IdleStacks::trim_all(Sched& sched, std::int64_t now_ns) {
  at_ = 0;
  while (!trim_some(sched, now_ns)) {
  }
  return youngest_ns_ == 0 ? 0 : youngest_ns_ + kAfterNs;
}

}  // namespace tuza::rt
