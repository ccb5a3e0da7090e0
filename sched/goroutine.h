// Public header, part of <tuza/tuza.h>.
//
// The calling goroutine, and the processors that goroutines run on.
//
// Parking calls are documented as such: after one, the goroutine may be on another thread, and thread_local
// variables and errno are that thread's. See docs/reference/contract.md.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza {

// Lets other goroutines run: the caller queues behind those that are runnable. Parks. Goroutines only.
void yield();

// Ends the calling goroutine. Its destructors run; catch (...) blocks must rethrow. If the main goroutine
// calls it, the program continues until something else ends it. Goroutines only.
[[noreturn]] void goexit();

// The number of existing goroutines: runnable, running or waiting. Any thread; 0 outside tuza::run.
[[nodiscard]] std::size_t num_goroutine();

// The number of processors (Ps): how many goroutines can run at once, not counting goroutines that lost
// their P because they computed or blocked for too long. Any thread; 0 outside tuza::run.
[[nodiscard]] int max_procs();

// Sets the number of processors to `n` (at most 256) and returns the previous value; n <= 0 changes nothing.
// An increase takes effect at once. After a decrease, each surplus processor is removed as soon as its
// goroutine enters the scheduler or has used up its slice. From the first call on, the runtime no longer
// follows changes of the CPU quota. Does not park.
int set_max_procs(int n);

// Binds the calling goroutine to its thread: the goroutine runs on no other thread, and nothing else runs on
// that thread, until unlock_os_thread() has been called as often as lock_os_thread(). For libraries that
// keep state per thread. The thread is never the one that called tuza::run. If the goroutine ends locked,
// its thread ends with it (a thread that has forked ends with the runtime). Does not park; parking while
// locked costs two thread switches.
void lock_os_thread();
void unlock_os_thread();

// Sets the maximum number of threads that may run goroutines, and returns the previous value: initially
// 10,000, at most 65,536. A goroutine that blocks in the kernel, or computes for a long time, has a thread
// of its own. If the runtime needs a thread beyond the limit, the process aborts ("thread exhaustion").
// Without a limit, a program that blocks more and more threads would take the machine down with it. n <= 0
// changes nothing. Any thread inside tuza::run. Does not park.
int set_max_threads(int n);

// The id of the calling goroutine: a number from 1 on that no other goroutine of this run has or had. 0 on
// other threads.
[[nodiscard]] std::uint64_t goroutine_id();

// Sets the name shown in dumps; the first 27 bytes are kept. No effect on other threads.
void set_goroutine_name(std::string_view name);
// The returned view is valid until the goroutine changes its name or ends; empty on other threads.
[[nodiscard]] std::string_view goroutine_name();

}  // namespace tuza
