// Gives back the stack memory that long-parked goroutines no longer use.
//
// A goroutine that once used much of its stack (for a handshake, or a large response) and then waits for
// minutes keeps every page that it has touched. When the goroutine has waited for kAfterNs, sysmon gives back
// the pages below its stack pointer, once per wait. All that the goroutine needs to continue lies above.
//
// This happens only where the code permits it (NothingBelow). The memory below a goroutine's stack pointer
// may be in use: if a frame holds an array that serves as the stack of a coroutine or fiber, the stack
// pointer may lie in this array, above the frames that resumed the coroutine or fiber. Neither the stack
// pointer nor a walk along the frames distinguishes such a stack from others. Hence nothing is given back
// from a goroutine that may be in user code. The HTTP server permits it for idle connections, because then
// all frames of the goroutine are the server's own.
//
// The goroutine is pinned while its stack is trimmed, and a waker waits for the end of the trim (G::pin):
// some microseconds, or, if another thread holds the lock of the process's memory map, until this thread
// releases it.
// Owner: sysmon.
#pragma once

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/m.h>

#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Sched;

// Declares, for its lifetime, that all frames of the current goroutine belong to code that keeps no other
// stack on this stack. Goroutines only.
class NothingBelow {
 public:
  NothingBelow() { current_m()->current->nothing_below = true; }
  ~NothingBelow() { current_m()->current->nothing_below = false; }
  NothingBelow(const NothingBelow&) = delete;
  NothingBelow& operator=(const NothingBelow&) = delete;
};

class IdleStacks {
 public:
  static constexpr std::int64_t kAfterNs = 10'000'000'000;
  static constexpr std::size_t kPerCall = 512;  // bounds the time of one call: about half a millisecond

  // Scans the next few goroutines. True: the call has completed a round. `after_ns`: shorter in tests.
  bool trim_some(Sched& sched, std::int64_t now_ns, std::int64_t after_ns = kAfterNs);

  // Scans all goroutines, while nothing runs. Returns the time at which the last of the goroutines that wait
  // now is due; 0 if none is left.
  std::int64_t trim_all(Sched& sched, std::int64_t now_ns);

 private:
  std::size_t at_ = 0;            // position of the scan in the directory of Gs
  std::int64_t youngest_ns_ = 0;  // start of the youngest wait in this round that was not due yet
};

}  // namespace tuza::rt
