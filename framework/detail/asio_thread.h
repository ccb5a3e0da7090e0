// The thread of an AsioContext, or of Boost's.
#pragma once

#include <tuza/sched/external.h>

#include <functional>
#include <memory>
#include <thread>

namespace tuza {

namespace rt {
class EndHook;
}

namespace detail {

// Calls `run` on a thread of its own, until `stop` makes it return: when this is destroyed, or when tuza::run ends.
class AsioThread {
 public:
  // Call on a goroutine. Throws std::system_error if there is no thread.
  AsioThread(std::function<void()> run, std::function<void()> stop);
  // Call on a goroutine. Parks.
  ~AsioThread();
  AsioThread(const AsioThread&) = delete;
  AsioThread& operator=(const AsioThread&) = delete;

 private:
  void begin();
  void end();

  const std::function<void()> run_, stop_;
  std::thread thread_;
  const ExternalWaker promise_;
  const std::unique_ptr<rt::EndHook> running_;  // begin() starts the thread, end() joins it
};

}  // namespace detail
}  // namespace tuza
