#include <tuza/sched/time/sleep.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/event.h>

namespace tuza::rt {
namespace {

void wake_sleeper(Timer& timer) {
  auto* g = static_cast<G*>(timer.argument);
  g->win();
  GList one;
  one.push_back(g);
  ready(std::move(one));  // behind goroutines that were woken before it
}

// Armed only in the commit: a timer that fired earlier would find the goroutine not yet parked.
bool commit_sleep(G* g, void* when_ns) {
  clock_arm(g->timer, *static_cast<const std::int64_t*>(when_ns));
  return true;
}

}  // namespace

Result<void> sleep_until_ns(const tuza::Context& ctx, std::int64_t when_ns) {
  parking_point();
  if (ctx.done()) return std::unexpected(ctx.cause());
  if (when_ns <= clock_now_ns()) return {};
  Wait wait;
  wait.block(WaitReason::kSleep, Until{.event = ctx.event(), .deadline_ns = when_ns});
  if (ctx.done() && clock_now_ns() < when_ns) return std::unexpected(ctx.cause());
  return {};
}

void sleep_until_ns(std::int64_t when_ns) {
  parking_point();
  if (when_ns <= clock_now_ns()) return;
  G* g = current_g();
  if (g == nullptr) fatal("sleep_for() or sleep_until() on a thread that is not a goroutine");
  g->timer.function = &wake_sleeper;
  g->timer.argument = g;
  park(&commit_sleep, &when_ns, WaitReason::kSleep);
}

}  // namespace tuza::rt
