// Time slices: find the goroutines that hold a P for too long, and take their Ps.
//
// A P whose pick count has not changed since the last scan has run one goroutine the whole time. Sysmon takes
// it:
//   - after a slice (10 ms), whether others wait or not: the next event then finds a free P;
//   - after one millisecond, if others wait and no other P is idle (early handoff). The goroutine loses only its P,
//     and everyone else's tail latency falls from slices to milliseconds. The delay grows to as much as four
//     milliseconds while goroutines keep coming back almost finished: a handoff costs more than that;
//   - as soon as two scans see the same marked blocking call, if others wait;
//   - at the first scan that finds the thread blocked in the kernel according to /proc (a call that nobody
//     marked), if others wait. Sysmon then scans every 20 us for a while, as a thousand more may follow.
// Time is measured from the first scan that saw the present pick count, at most one sysmon tick after the
// goroutine began. That tick is 1 ms if a goroutine has recently kept others waiting, else 2 ms.
// A goroutine that is inside the runtime at that moment is asked to yield at its next parking call. If
// checkpoints were compiled into the program, other goroutines are asked too, and keep their P until the next
// scan. They are asked at once if a goroutine woken by I/O or a timer is waiting.
//
// Owner: sysmon, except for came_back().
#pragma once

#include <tuza/sched/rt/idle/idle_mask.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct Sched;
struct P;
struct M;
struct G;
enum class GoneFor : std::uint8_t;

// Applies from now on to all runtimes of the process: goroutines usually pass a parking point within
// microseconds (checkpoints/checkpoints.cpp). A yield there costs less than the M that a handoff wakes.
bool ask_before_taking();

// The most urgent kind of goroutine that waits for a P.
enum class Waits : std::uint8_t { kNobody, kAnybody, kWoken };

class Slices {
 public:
  // How soon sysmon should scan again.
  enum class Pace : std::uint8_t {
    kIdle,   // no P is busy
    kBusy,   // Ps are busy and make progress, or would if their threads had a core
    kSoon,   // Ps make progress now but recently did not, or one does not but nobody waits for it
    kWatch,  // work waits, and a P makes no progress
    kCall,   // work waits behind a blocking call
  };

  Pace scan(Sched& sched, std::int64_t now);

  // A goroutine that lost its P to an early handoff has a P again, or has ended. The arguments are the time
  // that it spent without one. Called on its own thread.
  void came_back(const Sched& sched, std::int64_t wall_ns, std::int64_t cpu_ns);

  // The current delay before an early handoff, ns.
  [[nodiscard]] std::int64_t early_ns(const Sched& sched) const;

  // Ps taken, and attempts that failed, so far. Any thread.
  [[nodiscard]] std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t withdrawn() const { return withdrawn_.load(std::memory_order_relaxed); }

 private:
  struct Seen {
    std::uint64_t picks = 0;
    std::int64_t since_ns = 0;      // when this pick count was first seen; 0: the P was idle
    std::uint32_t call = 0;         // G::calls of the blocking call seen at the last scan; 0: none
    std::int64_t began_cpu_ns = 0;  // the thread's CPU time at since_ns
    std::int64_t cpu_ns = 0;        // the thread's CPU time at the last scan that read it
    std::int64_t cpu_at_ns = 0;     // when that was; 0: never
    bool asked = false;             // the goroutine was asked to yield
    std::uint32_t refused = 0;      // attempts that found the goroutine inside the runtime
    // Consecutive results saying that this P's thread waits for a core, whatever goroutine it ran, plus the
    // scans since that skipped /proc.
    std::uint32_t core_waits = 0;
  };

  // What the thread of a goroutine that holds its P for long is doing.
  enum class Use : std::uint8_t { kUnknown, kComputes, kWaitsForCore, kBlocks };

  Pace scan_p(Sched& sched, P& p, Seen& seen, Waits others, std::int64_t now);
  bool take(Sched& sched, P& p, M* m, G& g, Seen& seen, GoneFor why, std::int64_t now);
  static void note_long_run(P& p, const M& m, Seen& seen, std::int64_t stuck_ns);
  static bool waits_for_core(const M& m, Seen& seen);
  static Use use_of_cpu(const M& m, Seen& seen, std::int64_t now);
  void early_handoff(const Sched& sched);

  std::array<Seen, kMaxProcsLimit> seen_{};
  std::int64_t blocked_at_ns_ = 0;  // when a P was last taken from a goroutine that blocked its thread
  std::int64_t stalled_at_ns_ = 0;  // when a computing or blocking goroutine last kept others waiting
  std::atomic<std::int64_t> early_more_ns_{0};  // present increase of the early handoff delay
  std::atomic<std::uint64_t> taken_{0}, withdrawn_{0};
};

}  // namespace tuza::rt
