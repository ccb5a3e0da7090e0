// Public header, part of <tuza/tuza.h>.
//
// ExternalWaker: a promise that something outside the runtime will wake a goroutine.
//
// Any thread may call go(), ready a goroutine, unlock or signal. A thread that exists needs no promise for that: no
// deadlock is reported while the process has threads that are not the runtime's. While an ExternalWaker lives, none is
// reported either, and the time of a FakeClock stands still. So it is for two cases:
//
// - No thread will wake the goroutine, or none that exists already: a signal handler will start it, for example.
// - A test with a FakeClock has a thread whose work takes real time:
//
//       const tuza::testing::FakeClock clock;
//       std::thread worker([&, promise = tuza::ExternalWaker()] { results.send(compute()); });
//       results.recv();  // no fake time passes meanwhile
//       worker.join();
//
// Thread-safe. Create it before the first goroutine can wait for what it promises, inside tuza::run.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstdint>
#include <utility>

namespace tuza {

class [[nodiscard]] ExternalWaker {
 public:
  ExternalWaker();
  ~ExternalWaker();
  ExternalWaker(ExternalWaker&& other) noexcept : run_number_(std::exchange(other.run_number_, 0)) {}
  ExternalWaker(const ExternalWaker&) = delete;
  ExternalWaker& operator=(const ExternalWaker&) = delete;

 private:
  std::uint64_t run_number_ = 0;  // the runtime that received the promise; 0: none did
};

}  // namespace tuza
