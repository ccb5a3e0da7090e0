// The end of a goroutine's values of GoroutineLocals (sched/sync/goroutine_local.h).
#pragma once

namespace tuza::rt {

// Destroys all values of the calling goroutine because it ends, including values that destructors create anew.
void destroy_locals() noexcept;

}  // namespace tuza::rt
