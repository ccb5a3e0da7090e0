// Giving back what long-parked goroutines have left on their stacks.
//
// A goroutine that once went deep (a handshake, a large response) and then waits for minutes keeps every page
// it has touched. Sysmon gives back the pages below its stack pointer, once per wait, when it has waited for
// kAfterNs. What it needs to go on lies above.
//
// While its stack is trimmed the goroutine is pinned. A waker waits that long (G::pin): some microseconds, or
// until another thread of the process lets go of its memory map.
// Owner: sysmon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Sched;

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
