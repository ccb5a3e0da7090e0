// Public header, part of <tuza/tuza.h>.
//
// Marks calls that block the thread.
//
//     const long n = tuza::blocking([&] { return database.query(text); });
//
//     {
//       const tuza::BlockingCall call;
//       n = ::read(fd, buffer, size);
//       error = errno;                  // here, not after the scope
//     }
//
// Marking a call is optional: a goroutine that does not return to the scheduler loses its P anyway
// (docs/internals/slices.md). The mark tells the runtime what the goroutine is doing, with these effects:
//   - kLong hands off the P at once, before another goroutine has waited for it.
//   - A short call of unknown length keeps the P; the mark costs a few nanoseconds. If the call lasts while
//     other goroutines wait, sysmon takes the P after milliseconds at most, and sooner while it is busy with
//     other long calls.
//   - When the call is over, the goroutine takes its old P if that P is idle, else any idle P. Otherwise it
//     queues for a P, and does not continue to compute without one.
//   - The goroutine is not reported as stalled (TUZA_DEBUG=stalls).
//
// The end of the scope parks: afterwards the goroutine may be on another thread. Results that the call left
// in thread-locals, errno among them, must be read inside the scope. Any call is allowed inside the scope,
// parking calls included. Scopes nest; only the outermost one counts. On a thread that is not a goroutine
// they do nothing.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstdint>
#include <functional>
#include <utility>

namespace tuza {

enum class CallLength : std::uint8_t {
  kUnknown,  // keep the P unless the call turns out to be long
  kLong,     // known to take milliseconds at least: hand off the P at once
};

class [[nodiscard]] BlockingCall {
 public:
  explicit BlockingCall(CallLength length = CallLength::kUnknown);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
};

// Calls `call` in the scope of a BlockingCall and returns its result. Parks.
template <class F>
decltype(auto) blocking(F&& call) {
  const BlockingCall scope;
  return std::invoke(std::forward<F>(call));
}
template <class F>
decltype(auto) blocking(CallLength length, F&& call) {
  const BlockingCall scope(length);
  return std::invoke(std::forward<F>(call));
}

}  // namespace tuza
