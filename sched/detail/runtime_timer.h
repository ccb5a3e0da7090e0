// A timer of the runtime: calls a function once, at a point of monotonic time. Programs use tuza::Timer
// (sched/time/timer.h), Ticker and after_func(), which are built on this timer; rt::Alarm is the layer
// between.
//
// Intrusive: the timer lives inside its user (a sleeping goroutine, a descriptor with a deadline), so arming
// it allocates nothing. Its memory must stay valid while the timer is armed.
//
// The function runs on some M's scheduler stack, with no lock held. It may ready goroutines and arm timers;
// it must not park, block or throw. It may run late, never early.
//
// Thread-compatible: two calls on one timer must not overlap (its owner has a lock or is alone), but either
// may overlap with the timer firing. A fire that has begun cannot be stopped: an owner that arms a timer
// again must distinguish an old fire from a new one by state of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class TimerHeap;

struct Timer {
  using Function = void (*)(Timer& timer);

  // Set by the owner while the timer is not armed.
  Function function = nullptr;
  void* argument = nullptr;

  // Guarded by the lock of `heap`.
  std::int64_t when_ns = 0;
  std::uint32_t index = 0;  // of its heap entry; kDisarmed: its runtime has ended without firing it
  static constexpr std::uint32_t kDisarmed = 0xFFFF'FFFF;
  std::uint32_t slack = 0;  // minimum by which when_ns is behind its entry, in units of the heap

  // The heap the timer is armed in; null when not armed. Changed under that heap's lock only. Readers
  // without the lock read it to find the lock, and check it again under the lock.
  std::atomic<TimerHeap*> heap{nullptr};
};

enum class Armed : std::uint8_t {
  kAdded,  // it was not armed. An earlier arming will not fire any more, unless its fire has begun
  kMoved,  // it was armed; only the new time counts
  kNoRuntime,
};

// Arms `timer` for `when_ns` on the monotonic clock; moves it if it is already armed. Outside tuza::run it
// does nothing. Does not park.
Armed timer_arm(Timer& timer, std::int64_t when_ns);

// True if the timer was armed and will not fire now. Does not park.
bool timer_stop(Timer& timer);

// True if the runtime in which the timer was armed has ended before it fired.
[[nodiscard]] bool timer_disarmed(const Timer& timer);

}  // namespace tuza::rt
