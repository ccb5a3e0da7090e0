// Public header, part of <tuza/tuza.h>.
//
// Threads that are not goroutines and talk to them.
//
// Any thread may call go(), ready a goroutine, unlock, signal. What the runtime cannot know is whether a
// thread that is busy elsewhere will do so later. While an ExternalWaker lives, it is a promise that some
// thread may still wake a goroutine, and the runtime does not call goroutines that wait for it deadlocked:
//
//     tuza::run([] {
//       tuza::WaitGroup done;
//       done.add(1);
//       std::thread worker([&, promise = tuza::ExternalWaker()] { compute(); done.done(); });
//       done.wait();
//       worker.join();
//     });
//
// Thread-safe. Create it where the wait begins to be possible, inside tuza::run.
#pragma once

#include <cstdint>
#include <utility>

namespace tuza {

class ExternalWaker {
 public:
  ExternalWaker();
  ~ExternalWaker();
  ExternalWaker(ExternalWaker&& other) noexcept : run_number_(std::exchange(other.run_number_, 0)) {}
  ExternalWaker(const ExternalWaker&) = delete;
  ExternalWaker& operator=(const ExternalWaker&) = delete;

 private:
  std::uint64_t run_number_ = 0;  // of the runtime the promise was given to; 0: to none
};

}  // namespace tuza
