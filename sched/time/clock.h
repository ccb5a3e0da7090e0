// Public header, part of <tuza/time.h>.
//
// The monotonic clock that Tuza's timers go by.
//
//     const auto began = tuza::now();
//     work();
//     log("took {}", tuza::now() - began);
//
// It is std::chrono::steady_clock, but for tests that have a tuza::testing::FakeClock: code that asks
// tuza::now() can be tested with it. Any thread. Does not park.
#pragma once

#include <chrono>

namespace tuza {

[[nodiscard]] std::chrono::steady_clock::time_point now();

}  // namespace tuza
