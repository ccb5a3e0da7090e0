// Public header, part of <tuza/tuza.h>.
//
// The goroutine that calls, and the processors it runs on.
//
// Parking calls say so: after one, the goroutine may be on another thread, and thread_local variables and
// errno are that thread's. See HACKING.md for the contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza {

// Lets the others run: the goroutine goes behind those that wait. Parks. Goroutines only.
void yield();

// Ends the calling goroutine: its destructors run, catch (...) blocks must rethrow. When the main goroutine
// does it, the program goes on until it is ended otherwise. Goroutines only.
[[noreturn]] void goexit();

// Goroutines that exist, runnable, running or waiting. Any thread; 0 outside tuza::run.
[[nodiscard]] std::size_t num_goroutine();

// The number of processors (Ps): how many goroutines can run at once, those apart that have lost theirs
// because they computed or blocked for long. Any thread; 0 outside tuza::run.
[[nodiscard]] int max_procs();

// Changes that to `n` (at most 256) and returns what it was; n <= 0 changes nothing. Takes effect at once
// when it grows; when it shrinks, each surplus processor goes as soon as its goroutine comes to the
// scheduler, or has used up its slice. From the first call on, changes of the CPU quota are not followed any
// more. Does not park.
int set_max_procs(int n);

// Binds the calling goroutine to its thread: it runs on no other, and nothing else runs there, until
// unlock_os_thread() has been called as often. For libraries that keep state per thread. That thread is never
// the one that called tuza::run. If the goroutine ends locked, its thread ends with it (one that has forked: with the
// runtime). Does not park; parking while locked costs two thread switches.
void lock_os_thread();
void unlock_os_thread();

// How many threads may run goroutines, 10,000 at first and at most 65,536; returns what it was. A goroutine
// that blocks in the kernel, or computes for long, has a thread of its own. If another one is needed beyond
// the limit the process aborts ("thread exhaustion"): without a limit a program that blocks more and more
// would take the machine with it. n <= 0 changes nothing. Any thread inside tuza::run. Does not park.
int set_max_threads(int n);

// Of the calling goroutine: a number that no other goroutine of this run has or had, from 1 on; 0 on other
// threads.
[[nodiscard]] std::uint64_t goroutine_id();

// The name shown in dumps; the first 27 bytes are kept. No effect on other threads.
void set_goroutine_name(std::string_view name);
// Valid until the goroutine changes its name or ends; empty on other threads.
[[nodiscard]] std::string_view goroutine_name();

}  // namespace tuza
