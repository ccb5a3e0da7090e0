// The OS threads behind Ms, and the runtime's helper threads (sysmon, the maker of Ms, the poller's).
//
// Each thread is joined, so that when the runtime has ended its thread_locals are destroyed too, before run() returns
// and long before the statics they may use (rt/idle/ended_threads.h).
//
// A thread's stack holds the static thread_locals of the program and its libraries as well. It is larger by as much.
#pragma once

#include <pthread.h>
#include <tuza/sched/rt/m.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

// Once per runtime, before its first thread: how much room thread_locals take.
void measure_thread_locals();

// A new M on a new thread; it looks for work, then waits among the idle Ms. False if the system refuses, or
// kMaxMs are reached. Allocates: called by the maker of Ms, or with its consent (rt/idle/idle_ms.h).
bool start_m(Sched& sched);

// Whether the caller, a thread of `m`, is on the stack that the system has given it, rather than on a goroutine's or on
// one that the program has made.
[[nodiscard]] bool on_own_stack(const M& m);

// Gives the calling thread an arena of malloc's, and has its end noticed: before its first goroutine at the latest, and
// ahead of need where it has been spare for a while. Not at once: short runs have more spare Ms or fewer, and arenas, of
// 64 MiB of addresses each, stay in the process. Without memory it leaves `may_run_programs` as it is; so exit() looks, too.
void allow_programs(M* m);

// Binds the calling thread to `m` / releases it.
void begin_m(M* m);
void end_m(M* m);

// At the end of the runtime, when no thread is made any more: joins those of Ms that have ended, if they are over before
// `deadline_ns`. Nobody waits for the others, which are in the kernel or in destructors of the program's.
void join_threads(Sched& sched, std::int64_t deadline_ns);

// Gives back what `m` has beside its struct; its thread is gone.
void unmap_m(M& m);

// A thread with all signals blocked, named `name` in ps and top. 0, or the errno of a system that refuses.
int start_helper_thread(pthread_t& thread, const char* name, void* (*main)(void*), void* argument);
void join_helper_thread(pthread_t thread);
// Ends the process: the runtime cannot do without the thread that could not be created.
[[noreturn]] void no_first_thread(int error);

}  // namespace tuza::rt
