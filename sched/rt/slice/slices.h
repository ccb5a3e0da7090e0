// Time slices: finding the goroutines that do not come back, and taking their Ps.
//
// A P that has picked nobody new since the last looks runs one goroutine all the time. Sysmon takes it
//   - after a slice (10 ms), whether others wait or not: the next event then finds a P that is free;
//   - after a millisecond, if others wait and no other P is idle (early handoff): the goroutine loses
//     nothing but its P, and the tail of everyone else falls from slices to milliseconds. After up to four,
//     where goroutines keep coming back with hardly anything left to do: a handoff costs more than that;
//   - as soon as the same marked blocking call is seen twice, if others wait;
//   - at the first look that finds its thread blocked in the kernel, if others wait: a call that
//     nobody marked. /proc says so. Once that has been seen sysmon looks every 20 us for a while, as there
//     may be a thousand.
// The times count from the first look that found the present picks: one tick of sysmon later, at most, than
// the goroutine began. That tick is 1 ms where somebody has lately kept others waiting, else 2.
// A goroutine that is inside the runtime at that moment is asked to yield at its next
// parking call. Where checkpoints were compiled into the program, others are asked too, and keep their P
// until the next look; they are asked at once if somebody waits whom I/O or a timer has woken.
//
// Owner: sysmon, but for came_back().
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

// From now on, in all runtimes of the process: goroutines usually pass a parking point within microseconds
// (checkpoints/checkpoints.cpp). A yield there costs less than the M that a handoff wakes.
bool ask_before_taking();

// Who waits for a P, at the most urgent.
enum class Waits : std::uint8_t { kNobody, kAnybody, kWoken };

class Slices {
 public:
  // How soon sysmon should look again.
  enum class Pace : std::uint8_t {
    kIdle,   // no P is at work
    kBusy,   // Ps are at work and come round, or would if their threads had a core
    kSoon,   // they do now but did not lately, or one does not though nobody waits for it
    kWatch,  // work waits, and a P does not come round
    kCall,   // work waits behind a blocking call
  };

  Pace look(Sched& sched, std::int64_t now);

  // A goroutine whose P was taken early has one again, or has ended, after so long without. Its thread.
  void came_back(const Sched& sched, std::int64_t wall_ns, std::int64_t cpu_ns);

  // After how long Ps are taken early at present, ns.
  [[nodiscard]] std::int64_t early_ns(const Sched& sched) const;

  // Ps taken, and trials that came to nothing, so far. Any thread.
  [[nodiscard]] std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t withdrawn() const { return withdrawn_.load(std::memory_order_relaxed); }

 private:
  struct Seen {
    std::uint64_t picks = 0;
    std::int64_t since_ns = 0;      // when these picks were seen first; 0: the P was idle
    std::uint32_t call = 0;         // G::calls of the blocking call that was seen; 0: none
    std::int64_t began_cpu_ns = 0;  // CPU time of the thread then
    std::int64_t cpu_ns = 0;        // CPU time of the thread at the last look that asked for it;
    std::int64_t cpu_at_ns = 0;     // when that was; 0: never
    bool asked = false;             // to yield
    std::uint32_t refused = 0;      // trials that have found it inside the runtime
    // Answers in a row that the thread with this P waits for a core, whatever it ran, and looks that went without.
    std::uint32_t core_waits = 0;
  };

  // What the thread of a goroutine does that has not come round.
  enum class Use : std::uint8_t { kUnknown, kComputes, kWaitsForCore, kBlocks };

  Pace look_at(Sched& sched, P& p, Seen& seen, Waits others, std::int64_t now);
  bool take(Sched& sched, P& p, M* m, G& g, Seen& seen, GoneFor why, std::int64_t now);
  static void note_long_run(P& p, const M& m, Seen& seen, std::int64_t stuck_ns);
  static bool waits_for_core(const M& m, Seen& seen);
  static Use use_of_cpu(const M& m, Seen& seen, std::int64_t now);
  void early_handoff(const Sched& sched);

  std::array<Seen, kMaxProcsLimit> seen_{};
  std::int64_t blocked_at_ns_ = 0;  // when a P was last taken from a goroutine that blocked its thread
  std::int64_t stalled_at_ns_ = 0;  // when a goroutine that computes or blocks last kept others waiting
  std::atomic<std::int64_t> early_more_ns_{0};  // so much later are early handoffs at present
  std::atomic<std::uint64_t> taken_{0}, withdrawn_{0};
};

}  // namespace tuza::rt
