#include <tuza/sched/sync/future.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/sync/context.h>

namespace tuza::rt {

void FutureCore::wait() { done.wait(WaitReason::kFuture); }

Result<void> FutureCore::wait(const ::tuza::Context& ctx) {
  if (done.wait(WaitReason::kFuture, Until{.event = ctx.event()})) return {};
  return std::unexpected(ctx.cause());
}

void FutureCore::break_promise() {
  error = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
  done.fire();
}

void future_is_empty() { fatal("use of an empty Future: moved from, or its result was moved out"); }
void promise_is_empty() { fatal("Promise: result set twice, future() called twice, or moved from"); }

}  // namespace tuza::rt
