// The global run queue (GRQ): four levels, by how soon their goroutines deserve a P.
//
//   kLatecomer  as kWoken, but woken during a backlog of goroutines that stall (rt/queue/backlog.h)
//   kWoken      just woken by I/O, a timer or an outside thread: a client waits for the answer. Also goroutines
//               that return from running without a P, for the first time since they last waited, with less
//               than 10 ms of CPU used meanwhile
//   kNew        new, or readied by another goroutine, or yielded
//   kReturned   used up a slice, or returned in any other way: they have had much CPU already
//
// The levels are served in this order. Every 61st pick begins with kReturned or, alternately, with kNew, so
// that no level starves. (With a single level, a goroutine woken behind a hundred new long runners would wait
// for a slice of each.) Goroutines that overflow from an LRQ keep their level.
//
// Thread-safe; the guarantees of GlobalQueue hold for each level.
#pragma once

#include <tuza/sched/rt/queue/g_list.h>
#include <tuza/sched/rt/queue/global_queue.h>

#include <array>
#include <cstdint>
#include <span>

namespace tuza::rt {

enum class Level : std::uint8_t { kLatecomer, kWoken, kNew, kReturned };
inline constexpr std::size_t kLevels = 4;

class GlobalQueues {
 public:
  [[nodiscard]] GlobalQueue& operator[](Level level) { return queues_[static_cast<std::size_t>(level)]; }
  [[nodiscard]] const GlobalQueue& operator[](Level level) const {
    return queues_[static_cast<std::size_t>(level)];
  }

  // The size of all levels together. With seq_cst, as the parking protocol needs it, the sum includes every
  // goroutine that was submitted before the call began and has not been taken, because a goroutine stays on
  // one level while it waits. Goroutines that are moved meanwhile (GlobalQueue::move_to) are the exception;
  // their mover wakes an M afterwards.
  [[nodiscard]] std::uint32_t size(std::memory_order order = std::memory_order_relaxed) const {
    std::uint32_t sum = 0;
    for (const GlobalQueue& queue : queues_) sum += queue.size(order);
    return sum;
  }

  // Takes a P's fair share of the first level that is not empty; see GlobalQueue::pop_batch. kReturned yields
  // one goroutine at a time, because its goroutines must not fill a local queue. kLatecomer also yields one
  // at a time, because in a local queue latecomers would wait behind goroutines that were woken before them.
  enum class First : std::uint8_t { kWoken, kNew, kReturned };
  struct Batch {
    std::uint32_t size = 0;
    Level level = Level::kLatecomer;
  };
  Batch pop_batch(std::uint32_t procs, std::span<G*> out, First first) {
    for (const Level level : kOrders[static_cast<std::size_t>(first)]) {
      const bool single = level == Level::kReturned || level == Level::kLatecomer;
      const std::span<G*> room = single ? out.first(1) : out;
      if (const std::uint32_t n = (*this)[level].pop_batch(procs, room); n > 0) return {n, level};
    }
    return {};
  }

 private:
  // Indexed by First.
  static constexpr Level kOrders[3][kLevels] = {
      {Level::kLatecomer, Level::kWoken, Level::kNew, Level::kReturned},
      {Level::kNew, Level::kReturned, Level::kLatecomer, Level::kWoken},
      {Level::kReturned, Level::kNew, Level::kLatecomer, Level::kWoken}};
  std::array<GlobalQueue, kLevels> queues_;
};

}  // namespace tuza::rt
