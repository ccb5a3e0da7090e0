// The overloads that take a Context, made of the wait that takes an Until.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/wait.h>

#include <expected>

namespace tuza::rt {

// A parking point. False: the context has ended.
[[nodiscard]] bool may_wait(const tuza::Context& context);

// Calls wait(until), which says whether it got what it waited for before `context` ended. A context that has
// ended already is an error even if there would be nothing to wait for, so that a loop of such calls ends.
template <class F>
[[nodiscard]] Result<void> within(const tuza::Context& context, F&& wait) {
  if (!may_wait(context) || !wait(Until{.event = context.event()})) return std::unexpected(context.cause());
  return {};
}

}  // namespace tuza::rt
