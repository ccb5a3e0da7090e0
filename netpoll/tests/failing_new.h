// Memory that runs out: the test program's operator new fails when it is told to. Not in builds with a sanitizer, which brings
// its own.
//
// Of the whole process: for children of fork() (sched/tests/children.h).
#pragma once

namespace tuza::testing {

// From now on, so many allocations succeed, and those behind them throw std::bad_alloc; -1: all succeed.
void fail_allocations_after(int successes);

}  // namespace tuza::testing
