#include <tuza/sched/rt/base/thread_state.h>

namespace tuza::rt {

// POSIX does not tell what another thread does.
bool thread_is_runnable(std::int32_t, bool unknown) { return unknown; }

bool thread_waits_for_disk(std::int32_t) { return false; }

std::uintptr_t futex_waited_for(std::int32_t) { return 0; }

WaitingCall waiting_call(std::int32_t) { return {}; }

bool is_call_on_file(std::string_view) { return false; }

}  // namespace tuza::rt
