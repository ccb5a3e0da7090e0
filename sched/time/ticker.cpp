#include <tuza/sched/time/ticker.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/event.h>

#include <algorithm>

namespace tuza {

void Ticker::start(std::chrono::nanoseconds period) {
  if (period.count() <= 0) rt::fatal("the period of a Ticker must be positive");
  const std::int64_t first_ns = rt::deadline_after(period);
  const rt::Enter rt;
  const LockGuard guard(channel_.lock());
  period_ns_ = period.count();
  tick_ns_ = first_ns;
  channel_.arm_locked(first_ns);
}

void Ticker::on_fire(rt::Timer& timer) {
  auto& self = *static_cast<Ticker*>(timer.argument);
  // fire() calls it under the lock of the channel.
  self.channel_.fire([&self]() TUZA_NO_THREAD_SAFETY_ANALYSIS { return self.next_tick_ns(); });
}

// Returns the first tick after now; missed ticks are dropped.
std::int64_t Ticker::next_tick_ns() {
  const std::int64_t now = rt::clock_now_ns();
  tick_ns_ = std::min(tick_ns_, now);  // a fake clock was ahead of the real one, and is gone
  const std::int64_t missed = (now - tick_ns_) / period_ns_;
  const std::int64_t steps = missed + 1;
  const std::int64_t end = rt::Until::kNever - 1;
  tick_ns_ = period_ns_ > (end - tick_ns_) / steps ? end : tick_ns_ + steps * period_ns_;
  return tick_ns_;
}

Result<void> Ticker::wait(const Context& ctx) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  if (channel_.wait(rt::Until{.event = ctx.event()})) return {};
  return std::unexpected(ctx.cause());
}

}  // namespace tuza
