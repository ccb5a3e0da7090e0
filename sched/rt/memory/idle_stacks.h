// Giving back what long-parked goroutines have left on their stacks.
//
// A goroutine that once went deep (a handshake, a large response) and then waits for minutes keeps every page
// it has touched. Sysmon gives back the pages below its stack pointer, once per wait, when it has waited for
// kAfterNs. What it needs to go on lies above.
//
// Only where code says so (NothingBelow). The memory below a goroutine's stack pointer may be in use: by the frames that
// resumed a coroutine or fiber whose own stack is an array in one of them. Neither the stack pointer nor a walk along
// the frames tells such a stack from others, so nothing is given back of goroutines that may be in user code. The HTTP
// server says so of its connections while they are idle, when all frames of the goroutine are its own.
//
// While its stack is trimmed the goroutine is pinned. A waker waits that long (G::pin): some microseconds, or
// until another thread of the process lets go of its memory map.
// Owner: sysmon.
#pragma once

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/m.h>

#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Sched;

// While it lives, all frames of the current goroutine are of code that keeps no other stack on this one. Goroutines
// only.
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
  static constexpr std::size_t kPerCall = 512;  // bounds the time sysmon is away: about half a millisecond

  // Looks at the next few goroutines. True: that was the end of a round. `after_ns`: shorter for tests.
  bool trim_some(Sched& sched, std::int64_t now_ns, std::int64_t after_ns = kAfterNs);

  // Looks at all of them, while nothing runs. Returns when the last of those that wait now is due; 0 if none
  // is left.
  std::int64_t trim_all(Sched& sched, std::int64_t now_ns);

 private:
  std::size_t at_ = 0;            // in the directory of Gs
  std::int64_t youngest_ns_ = 0;  // begin of the youngest wait seen in this round that is not due yet
};

}  // namespace tuza::rt
