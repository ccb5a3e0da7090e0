// A goroutine that parks must not hold a mutex of libc (arch/held_mutexes.h): the report of those that do.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

// Ends the process, naming `g`, if its thread holds one; it may if it owns the thread. Builds that do not
// count mutexes see none.
void check_no_mutex_is_held(const G& g);

}  // namespace tuza::rt
