#include <tuza/sched/time/timer.h>

#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/event.h>

namespace tuza {

static_assert(sizeof(Timer) == 64);

void Timer::on_fire(rt::Timer& timer) {
  static_cast<Timer*>(timer.argument)->channel_.fire([] { return rt::Until::kNever; });
}

Result<void> Timer::wait(const Context& ctx) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  if (channel_.wait(rt::Until{.event = ctx.event()})) return {};
  return std::unexpected(ctx.cause());
}

}  // namespace tuza
