// Implements the overloads that take a Context on top of the wait that takes an Until.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/wait.h>

#include <expected>

namespace tuza::rt {

// A parking point. False: the context has ended.
[[nodiscard]] bool may_wait(const tuza::Context& context);

// Calls wait(until), which returns whether its wait succeeded before `context` ended. A context that has
// already ended is an error even if the call need not wait, so that a loop of such calls ends.
template <class F>
[[nodiscard]] Result<void> within(const tuza::Context& context, F&& wait) {
  if (!may_wait(context) || !wait(Until{.event = context.event()})) return std::unexpected(context.cause());
  return {};
}

}  // namespace tuza::rt
