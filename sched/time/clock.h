// Public header, part of <tuza/time.h>.
//
// The monotonic clock that Tuza's timers use.
//
//     const auto began = tuza::now();
//     work();
//     log("took {}", tuza::now() - began);
//
// It is std::chrono::steady_clock, except in tests that have a tuza::testing::FakeClock: code that uses
// tuza::now() can be tested with a fake clock. Any thread. Does not park.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <chrono>

namespace tuza {

[[nodiscard]] std::chrono::steady_clock::time_point now();

}  // namespace tuza
