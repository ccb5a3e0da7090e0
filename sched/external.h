// Public header, part of <tuza/tuza.h>.
//
// ExternalWaker: a promise that a thread outside the runtime will wake a goroutine.
//
// Any thread may call go(), ready a goroutine, unlock or signal. The runtime cannot know whether a thread
// that is busy elsewhere will do so later. While an ExternalWaker lives, it promises that some thread may
// still wake a goroutine. The runtime then does not report goroutines that wait for such a wake-up as
// deadlocked:
//
//     tuza::run([] {
//       tuza::WaitGroup done;
//       done.add(1);
//       std::thread worker([&, promise = tuza::ExternalWaker()] { compute(); done.done(); });
//       done.wait();
//       worker.join();
//     });
//
// Thread-safe. Create it before the first goroutine can wait for the thread, inside tuza::run.
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
