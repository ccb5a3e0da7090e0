// Public header, part of <tuza/time.h>.
//
// LeakCheck: reports the goroutines that a test has left behind.
//
//     tuza::run([] {
//       const tuza::testing::LeakCheck leaks;
//       {
//         Server server;
//         server.handle(request);
//       }
//       EXPECT_EQ(leaks.report(), "");      // without this the destructor ends the process if any are left
//     });
//
// LeakCheck counts goroutines that did not exist when the check was created, except the caller and the
// runtime's own goroutines. The report has one line for each: its number, what it waits for, its name, and
// where it was started:
//
//     goroutine 7 [chan receive] cleaner, created in Server::Server() at server.cpp:42
//
// On a goroutine (fatal elsewhere). LeakCheck gives goroutines that are about to end some time, in real time
// even if there is a FakeClock.
#pragma once

#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tuza::testing {

class [[nodiscard]] LeakCheck {
 public:
  LeakCheck();
  // Prints the remaining goroutines and aborts, unless report() was called or an exception is propagating.
  // Parks.
  ~LeakCheck();
  LeakCheck(const LeakCheck&) = delete;
  LeakCheck& operator=(const LeakCheck&) = delete;

  // The goroutines that remain after `patience`. Returns an empty string as soon as none remain. Parks.
  [[nodiscard]] std::string report(rt::AnyDuration patience = std::chrono::seconds(1)) const;

 private:
  std::vector<std::uint64_t> before_;  // ids, sorted
  int exceptions_;
  mutable bool reported_ = false;
};

}  // namespace tuza::testing
