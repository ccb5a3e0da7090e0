// The OS threads behind Ms, and the runtime's helper threads (sysmon, the maker of Ms, the poller's thread).
//
// Each thread is joined. When the runtime has ended, the thread_locals of its threads are therefore destroyed
// too: before run() returns, and long before the statics that they may use (rt/idle/ended_threads.h).
//
// A thread's stack also holds the static thread_locals of the program and its libraries, and is larger by
// their size.
#pragma once

#include <pthread.h>
#include <tuza/sched/rt/base/foreign_threads.h>
#include <tuza/sched/rt/m.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

// Measures the space that thread_locals take. Call once per runtime, before its first thread.
void measure_thread_locals();

// Starts a new M on a new thread; the M looks for work, then waits among the idle Ms. Returns 0, or an errno if the
// system refuses, or kMaxMs is reached. Allocates: only the maker of Ms may call it, or an M with the maker's
// consent (rt/idle/idle_ms.h).
int start_m(Sched& sched);

// Whether the caller, the thread of `m`, runs on the stack that the system gave it, rather than on a
// goroutine's stack or one that the program made.
[[nodiscard]] bool on_own_stack(const M& m);

// Gives the calling thread a malloc arena, and registers for notice of the thread's end. Runs before the
// thread's first goroutine at the latest, and ahead of need on a thread that has been spare for a while. Not
// at once, because the number of spare Ms in a short run varies, and arenas, of 64 MiB of address space each,
// stay in the process. Without memory it leaves `may_run_programs` false; therefore exit() checks as well.
void allow_programs(M* m);

// Binds the calling thread to `m`, and releases it.
void begin_m(M* m);
void end_m(M* m);
// The calling thread, that of `m`, may wake goroutines from now on as any foreign thread may: in the destructors of its
// thread_locals, for example. Further calls do nothing.
void m_becomes_foreign(M* m);

// Call at the end of the runtime, when no more threads are made. Joins the threads of Ms that terminate
// before `deadline_ns`. Does not wait for the others, which are in the kernel or in destructors of the
// program.
void join_threads(Sched& sched, std::int64_t deadline_ns);

// Unmaps the memory that `m` owns besides its struct. The thread of `m` must have terminated.
void unmap_m(M& m);

// Starts a thread with all signals blocked, named `name` in ps and top, which calls `Main` as a known thread. Returns 0, or
// the errno if the system refuses.
int start_thread_with(pthread_t& thread, const char* name, void* (*main)(void*), void* argument);
template <void* (*Main)(void*)>
int start_helper_thread(pthread_t& thread, const char* name, void* argument) {
  const auto main = [](void* passed) {
    const KnownThread helper;
    return Main(passed);
  };
  return start_thread_with(thread, name, main, argument);
}
void join_helper_thread(pthread_t thread);
// Ends the process with status 1: the runtime cannot work without the thread that could not be created.
[[noreturn]] void no_first_thread(const char* which, int error);

}  // namespace tuza::rt
