// Public header, part of <tuza/tuza.h>.
//
// Calls that block the thread, marked as such.
//
//     const long n = tuza::blocking([&] { return database.query(text); });
//
//     {
//       const tuza::BlockingCall call;
//       n = ::read(fd, buffer, size);
//       error = errno;                  // here, not after the scope
//     }
//
// Nothing must be marked: a goroutine that does not come back loses its P anyway (HACKING.md, slices). The
// mark says what the goroutine is doing, so that
//   - kLong gives the P away at once, before anybody has waited for it;
//   - of a call of unknown length that is short the P is kept, at a cost of a few nanoseconds; of one that
//     lasts while others wait it is taken after milliseconds at most, and sooner while sysmon is busy with
//     others of the kind;
//   - when the call is over the goroutine takes its old P if that is idle, else any idle one, else it waits
//     for its turn, and does not go on computing without one;
//   - it is not reported as stalled (TUZA_DEBUG=stalls).
//
// The end of the scope parks: afterwards the goroutine may be on another thread. What the call left in
// thread-locals, errno among them, is read inside the scope. Inside it anything may be called, parking calls
// included. Scopes nest; the outermost counts. On a thread that is no goroutine they do nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace tuza {

enum class CallLength : std::uint8_t {
  kUnknown,  // keep the P unless the call turns out to be long
  kLong,     // milliseconds at least, it is known beforehand: give the P away at once
};

class [[nodiscard]] BlockingCall {
 public:
  explicit BlockingCall(CallLength length = CallLength::kUnknown);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
};

// Calls `call` in the scope of a BlockingCall and returns what it returns. Parks.
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
