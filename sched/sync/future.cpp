#include <tuza/sched/sync/future.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/sync/detail/within.h>

namespace tuza::rt {

void FutureCore::wait() { done.wait(WaitReason::kFuture); }

Result<void> FutureCore::wait(const ::tuza::Context& ctx) {
  return within(ctx, [this](const Until& until) { return done.wait(WaitReason::kFuture, until); });
}

void FutureCore::break_promise() {
  error = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
  done.fire();
}

void future_is_empty() { fatal("use of an empty Future: moved from, or its result was moved out"); }
void promise_is_empty() { fatal("Promise: result set twice, future() called twice, or moved from"); }

}  // namespace tuza::rt
