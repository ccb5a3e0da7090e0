// Public header, part of <tuza/time.h>.
//
// after_func(): runs a function in a goroutine of its own after a delay, unless it is stopped before.
//
//     tuza::DelayedCall watchdog = tuza::after_func(5s, [&] { conn.close(); });
//     serve(conn);
//     watchdog.stop();
//
//     tuza::after_func(1h, [] { rotate_keys(); }).detach();
//
// Semantics of Go's time.AfterFunc, with one exception: destroying the handle stops the call, because the
// objects that the function refers to seldom live longer. detach() keeps the call in force. stop() does not
// wait for a function that has been started. reset() runs the function (again) later, also while an earlier
// run is still in progress.
//
// Ordering: everything done before after_func() or reset() is visible to the function.
// Thread-safe, except for moving, assigning and destroying a handle. Does not park. Starting a call needs
// tuza::run (fatal elsewhere), and allocates once; firing, stop() and reset() allocate nothing. An exception
// that escapes the function ends the process, as with go().
#pragma once

#include <tuza/sched/detail/lost_result.h>
#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <source_location>
#include <utility>

namespace tuza {

namespace rt {
class DelayedFunction;
}  // namespace rt

// The handle of a delayed call. A handle that was moved from, or detached, does nothing.
class [[nodiscard]] DelayedCall {
 public:
  DelayedCall() = default;
  DelayedCall(DelayedCall&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  DelayedCall& operator=(DelayedCall&& other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~DelayedCall();

  // True: this call has prevented the function from running. False: the function was started, and may still
  // be running, or was stopped before.
  bool stop();
  // Starts the function `delay` from now, and at no other time. True if the function was pending.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& delay) {
    return reset_ns(rt::whole_ns(delay));
  }
  // Keeps the call in force after this object is destroyed; it cannot be stopped any more.
  void detach();

 private:
  friend DelayedCall after_func(rt::AnyDuration delay, MoveOnlyFunction<void()> function,
                                const std::source_location& where);
  explicit DelayedCall(rt::DelayedFunction* function) : function_(function) {}
  bool reset_ns(std::chrono::nanoseconds delay);

  rt::DelayedFunction* function_ = nullptr;  // holds a reference
};

// Runs `function` after `delay`; at once if the delay is not positive.
DelayedCall after_func(rt::AnyDuration delay, MoveOnlyFunction<void()> function,
                       const std::source_location& where = std::source_location::current());
template <class F>
  requires(detail::kReturnsResult<F>)
DelayedCall after_func(rt::AnyDuration delay, F&&) {
  detail::refuse_lost_result<F>();
  return after_func(delay, MoveOnlyFunction<void()>());
}

}  // namespace tuza
