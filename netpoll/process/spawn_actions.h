// What a child does between its start and its program, beyond POSIX.
#pragma once

#include <spawn.h>

namespace tuza::detail {

// The child closes all descriptors from `first` on. Where a child cannot, it keeps those that are not marked
// O_CLOEXEC. An errno, or 0.
int close_from(posix_spawn_file_actions_t& actions, int first);
// "SEGV"; null if the system does not say.
const char* short_signal_name(int signal);

}  // namespace tuza::detail
