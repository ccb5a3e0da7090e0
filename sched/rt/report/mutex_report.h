// Checks that no goroutine parks, ends, or loses its thread in another way, while it holds a std::mutex.
#pragma once

#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/rt/g.h>

namespace tuza::rt {

namespace mutex_report {
void check_park(const G& g);
void check_end(const G& g);
}  // namespace mutex_report

// Ends the process with a report if the calling thread holds a lock of libc. The report names `g`, the
// goroutine that runs here, where it is, who created it, and where each lock was locked. Does nothing if `g`
// owns its thread, or if the check is off.
inline void check_no_mutex_held(const G& g) {
  if (checks_held_mutexes()) [[unlikely]]
    mutex_report::check_park(g);
}

// The same for a goroutine that ends, limited to locks that the goroutine itself locked. Without this check
// the next goroutine on the thread would be blamed for them.
inline void check_no_mutex_left(const G& g) {
  if (checks_held_mutexes()) [[unlikely]]
    mutex_report::check_end(g);
}

}  // namespace tuza::rt
