// A goroutine that is about to park, or to lose its thread in another way, with a std::mutex in its hands.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

// Ends the process if the calling thread holds a lock of libc, with a report: `g`, the goroutine that runs
// here, where it is, who created it, and where each lock was locked. Not if `g` owns its thread. Debug and
// chaos builds only; elsewhere it does nothing.
#if defined(TUZA_CHECK_MUTEXES)
void check_no_mutex_held(const G& g);

// The same for a goroutine that ends; for locks that it locked itself. The next goroutine on its thread would
// be blamed for them.
void check_no_mutex_left(const G& g);
#else
inline void check_no_mutex_held(const G&) {}
inline void check_no_mutex_left(const G&) {}
#endif

}  // namespace tuza::rt
