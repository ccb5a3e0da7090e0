// The ends of a channel: what null means, and contexts.
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/handoff.h>
#include <tuza/sched/sync/chan_core.h>
#include <tuza/sched/sync/event.h>

namespace tuza::rt {
namespace {

void wait_on_nil(const Until& until) {
  parking_point();
  Wait wait;
  wait.block(WaitReason::kChanNil, until);
}

}  // namespace

void chan_send(ChanCore* chan, void* from) {
  if (chan == nullptr) return wait_on_nil({});
  chan->send(from);
}

bool chan_try_send(ChanCore* chan, void* from) { return chan != nullptr && chan->try_send(from); }

bool chan_recv(ChanCore* chan, void* to) {
  if (chan == nullptr) {
    wait_on_nil({});
    return false;
  }
  return chan->recv(to) == ChanCore::Attempt::kDone;
}

ChanCore::Attempt chan_try_recv(ChanCore* chan, void* to) {
  return chan == nullptr ? ChanCore::Attempt::kWouldBlock : chan->try_recv(to);
}

void chan_close(ChanCore* chan) {
  if (chan == nullptr) fatal("close of nil channel");
  chan->close();
}

}  // namespace tuza::rt
