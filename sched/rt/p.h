// P: a processor, the right to run goroutines, with what that needs: run queues, timers, caches.
//
// An M holds at most one P, and a P is held by at most one M. Code outside the scheduler reaches the P of its
// M only through rt/enter.h, so that sysmon can take the P from an M in user code (rt/slice/handoff.h).
#pragma once

#include <tuza/sched/rt/memory/per_p_cache.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/global_queues.h>
#include <tuza/sched/rt/queue/local_queue.h>
#include <tuza/sched/rt/queue/timer_heap.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

inline constexpr std::uint32_t kLocalQueueCapacity = 256;
using RunQueue = LocalQueue<G, kLocalQueueCapacity>;

struct alignas(128) P {
  // -- Constant after the runtime has started.
  std::int32_t id = 0;

  // -- Owner: the M that holds this P. Relaxed atomics are also read by sysmon and by reports.
  std::atomic<M*> m{nullptr};
  Relaxed<std::uint64_t> picks;           // goroutines picked; every 61st pick begins with housekeeping
  Relaxed<std::uint64_t> latecomer_pick;  // `picks` when a latecomer was picked last (rt/queue/backlog.h)
  std::uint32_t backlog_seen = 0;         // Backlog::number() when its queue was last sorted
  std::uint32_t runnext_streak = 0;       // consecutive picks from runnext, which share one slice
  Relaxed<std::uint64_t> tick;            // slices begun
  std::atomic<std::int64_t> slice_start_ns{0};  // coarse time of the last tick
  // The average time that a goroutine runs here, measured by housekeeping. It decides whether waking another M
  // pays.
  std::atomic<std::int64_t> average_run_ns{kInitialAverageRunNs};
  std::int64_t learn_since_ns = 0;  // begin of the measurement; 0: start a new one, as after idleness
  std::uint64_t learn_picks = 0;
  Relaxed<std::int64_t> io_waits;  // begun minus ended on this P; only the sum over all Ps is meaningful
  Relaxed<std::uint64_t> spawned;  // goroutines started here
  Relaxed<std::uint64_t> exited;   // goroutines that ended here
  GList dead_gs;                   // dead goroutines with a stack of the default class
  GList bare_gs;                   // dead goroutines without a stack
  std::uint64_t id_next = 0;       // goroutine ids reserved for this P: [id_next, id_end)
  std::uint64_t id_end = 0;
  std::array<CacheSlot, PerPCache::kCachesMax> caches{};  // free lists of the layers above

  // -- Own synchronisation.
  std::atomic<bool> attention{false};  // the runtime ends, or this P retires: take the slow path
  std::atomic<bool> retired{false};    // surplus and empty; guarded by procs_mutex
  RunQueue woken;  // woken by I/O or timers: served before `queue`, except at every eighth pick
  RunQueue queue;  // new, readied by others, or yielded
  std::atomic<G*> runnext{nullptr};  // set by the holder; taken by the holder or, after a delay, by a thief
  TimerHeap timers;

  // The LRQ for goroutines of a level.
  [[nodiscard]] RunQueue& local(Level level) { return level == Level::kWoken ? woken : queue; }
  [[nodiscard]] bool queues_empty() const { return woken.empty() && queue.empty(); }
  // The number of runnable goroutines queued here. For any thread; the answer may be stale.
  [[nodiscard]] std::uint32_t queued() const {
    return woken.size() + queue.size() + (runnext.load(std::memory_order_relaxed) != nullptr ? 1 : 0);
  }

  // Large, so that a program that begins with long-running goroutines spreads over all Ps at once.
  static constexpr std::int64_t kInitialAverageRunNs = 1'000'000;
};

}  // namespace tuza::rt
