// Waits on the nil channel, and channel waits with a context.
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/chan_core.h>
#include <tuza/sched/sync/select.h>

namespace tuza::rt {

void wait_on_nil(const Until& until) {
  parking_point();
  Wait wait;
  wait.block(WaitReason::kChanNil, until);
}

void fatal_close_of_nil() { fatal("close of nil channel"); }

Result<void> chan_send(ChanCore* chan, void* from, const tuza::Context& context) {
  if (context.done()) return std::unexpected(context.cause());
  const Until until{.event = context.event()};
  if (chan == nullptr) {
    wait_on_nil(until);
  } else if (chan->send(from, until)) {
    return {};
  }
  return std::unexpected(context.cause());
}

Result<bool> chan_recv(ChanCore* chan, void* to, const tuza::Context& context) {
  if (context.done()) return std::unexpected(context.cause());
  const Until until{.event = context.event()};
  if (chan == nullptr) {
    wait_on_nil(until);
  } else if (const auto attempt = chan->recv(to, until); attempt != ChanCore::Attempt::kWouldBlock) {
    return attempt == ChanCore::Attempt::kDone;
  }
  return std::unexpected(context.cause());
}

Event* event_of(const tuza::Context& context) { return context.event(); }

}  // namespace tuza::rt
