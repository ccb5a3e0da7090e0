// The OS threads behind Ms, and the runtime's helper threads (sysmon, the maker of Ms, the poller's).
#pragma once

#include <pthread.h>
#include <tuza/sched/rt/m.h>

namespace tuza::rt {

struct Sched;

// A new M on a new thread; it looks for work, then waits among the idle Ms. False if the system refuses, or
// kMaxMs are reached. Allocates: called by the maker of Ms, or with its consent (rt/idle_ms.h).
bool start_m(Sched& sched);

// Binds the calling thread to `m` / releases it.
void begin_m(M* m);
void end_m(M* m);

// Gives back what `m` has beside its struct; its thread is gone.
void unmap_m(M& m);

// A thread with all signals blocked, named `name` in ps and top. False if the system refuses.
bool start_helper_thread(pthread_t& thread, const char* name, void* (*main)(void*), void* argument);
void join_helper_thread(pthread_t thread);

}  // namespace tuza::rt
