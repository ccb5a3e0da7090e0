// Public header, part of <tuza/time.h>.
//
// after_func(): runs a function in a goroutine of its own, later, unless it is stopped before.
//
//     tuza::DelayedCall watchdog = tuza::after_func(5s, [&] { conn.close(); });
//     serve(conn);
//     watchdog.stop();
//
//     tuza::after_func(1h, [] { rotate_keys(); }).detach();
//
// Semantics of Go's time.AfterFunc, but for one thing: destroying the handle stops the call, since what the
// function refers to seldom lives longer; detach() lets it stand. stop() does not wait for a function that
// has been started. reset() lets it run (again) later, also while an earlier run is still on.
//
// Ordering: what was done before after_func() or reset() is visible to the function.
// Thread-safe, but for moving, assigning and destroying a handle. Does not park. Starting one takes a
// tuza::run (fatal elsewhere), and allocates once; firing, stop() and reset() allocate nothing. An exception
// that leaves the function ends the process, as with go().
#pragma once

#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <functional>
#include <source_location>
#include <utility>

namespace tuza {

namespace rt {
class DelayedFunction;
}  // namespace rt

// The handle. One that was moved from, or detached, does nothing.
class [[nodiscard]] DelayedCall {
 public:
  DelayedCall() = default;
  DelayedCall(DelayedCall&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  DelayedCall& operator=(DelayedCall&& other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~DelayedCall();

  // True: the function will not run, thanks to this call. False: it has been started, and may still be
  // running, or it was stopped before.
  bool stop();
  // Starts the function `delay` from now, and not otherwise. True if it was pending.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& delay) {
    return reset_ns(rt::whole_ns(delay));
  }
  // Lets it stand when this object goes; nobody can stop it any more.
  void detach();

 private:
  friend DelayedCall after_func(rt::AnyDuration delay, std::move_only_function<void()> function,
                                const std::source_location& where);
  explicit DelayedCall(rt::DelayedFunction* function) : function_(function) {}
  bool reset_ns(std::chrono::nanoseconds delay);

  rt::DelayedFunction* function_ = nullptr;  // a reference
};

// Runs `function` after `delay`; at once if that is not positive.
DelayedCall after_func(rt::AnyDuration delay, std::move_only_function<void()> function,
                       const std::source_location& where = std::source_location::current());

}  // namespace tuza
