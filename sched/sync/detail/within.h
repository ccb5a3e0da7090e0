// The overloads that take a Context, made of the wait that takes an Until.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/event.h>

#include <expected>

namespace tuza::rt {

// Calls wait(until), which says whether it got what it waited for before `context` ended. A context that has
// ended already is an error even if there would be nothing to wait for, so that a loop of such calls ends.
template <class F>
[[nodiscard]] Result<void> within(const tuza::Context& context, F&& wait) {
  parking_point();
  Event* const end = context.event();
  if ((end != nullptr && end->happened()) || !wait(Until{.event = end})) {
    return std::unexpected(context.cause());
  }
  return {};
}

}  // namespace tuza::rt
