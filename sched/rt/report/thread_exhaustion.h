// The report that ends the process when goroutines block all threads that there may be.
#pragma once

namespace tuza::rt {

struct Sched;

// With the goroutines that hold the threads, each kind once: what they work on, and where they are. For a thread of the
// runtime that runs no goroutine. Allocates.
[[noreturn]] void report_thread_exhaustion(Sched& sched);

}  // namespace tuza::rt
