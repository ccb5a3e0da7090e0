// Checks that no goroutine parks, ends, or loses its thread in another way, while it holds a std::mutex.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

// Ends the process with a report if the calling thread holds a lock of libc. The report names `g`, the
// goroutine that runs here, where it is, who created it, and where each lock was locked. Does nothing if `g`
// owns its thread, and in builds other than debug and chaos builds.
#if defined(TUZA_CHECK_MUTEXES)
void check_no_mutex_held(const G& g);

// The same for a goroutine that ends, limited to locks that the goroutine itself locked. Without this check
// the next goroutine on the thread would be blamed for them.
void check_no_mutex_left(const G& g);
#else
inline void check_no_mutex_held(const G&) {}
inline void check_no_mutex_left(const G&) {}
#endif

}  // namespace tuza::rt
