// A timer of the runtime: calls a function once, at a point of monotonic time. Programs have tuza::Timer
// (sched/time/timer.h), Ticker and after_func(), which are made of it; between them stands rt::Alarm.
//
// Intrusive: it lives inside what it serves (a goroutine that sleeps, a descriptor with a deadline), so
// arming one allocates nothing. Its memory must outlive it being armed.
//
// The function runs on some M's scheduler stack, with no lock held: it may ready goroutines and arm
// timers, it must not park, block or throw. It may run late, never early.
//
// Thread-compatible: two calls on one timer must not overlap (its owner has a lock or is alone), but either
// may overlap with the timer firing. A fire that has begun cannot be stopped: who arms a timer again tells
// an old fire from a new one by state of its own.
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
  std::uint32_t index = 0;  // of its entry; kDisarmed: its runtime has ended without firing it
  static constexpr std::uint32_t kDisarmed = 0xFFFF'FFFF;
  std::uint32_t slack = 0;  // how far when_ns is behind its entry at least, in units of the heap

  // The heap it is armed in; null when not armed. Changed under that heap's lock only; read without a lock
  // to find the lock, then looked at again.
  std::atomic<TimerHeap*> heap{nullptr};
};

enum class Armed : std::uint8_t {
  kAdded,  // it was not armed: nor will an earlier arming be heard of, unless its fire has begun
  kMoved,  // it was armed; only the new time counts
  kNoRuntime,
};

// Arms `timer` for `when_ns` on the monotonic clock; if it is armed already, moves it. Outside tuza::run it
// does nothing. Does not park.
Armed timer_arm(Timer& timer, std::int64_t when_ns);

// True if the timer was armed and now will not fire. Does not park.
bool timer_stop(Timer& timer);

// True if the runtime in which the timer was armed has ended before it fired.
[[nodiscard]] bool timer_disarmed(const Timer& timer);

}  // namespace tuza::rt
