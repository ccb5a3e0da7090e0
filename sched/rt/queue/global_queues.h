// The global run queue (GRQ) in four levels, by how soon its goroutines deserve a P.
//
//   kLatecomer as kWoken, but woken while goroutines that stall had piled up (rt/queue/pile_up.h)
//   kWoken     I/O, a timer or an outside thread has just woken them: somebody waits for their answer. Or
//              they come back from running without a P, with less than 10 ms of CPU used meanwhile, for the
//              first time since they waited for something
//   kNew       they are new, or readied by another goroutine, or yielded
//   kReturned  they have used up a slice, or come back otherwise: they have had much already
//
// Taken in that order. Every 61st pick begins with the returned or, by turns, with the new, so that nobody
// starves. (With one level, a goroutine that was woken behind a hundred new long runners would wait for a
// slice of each.) What overflows from an LRQ keeps its level.
//
// Thread-safe; what GlobalQueue says holds for each level.
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

  // Of all levels. With seq_cst, as the parking protocol needs it: a goroutine is on one level for as long as
  // it waits, so that whoever was submitted before the call began, and is not taken, is seen. But for who is moved
  // meanwhile (GlobalQueue::move_to), after which the mover wakes an M.
  [[nodiscard]] std::uint32_t size(std::memory_order order = std::memory_order_relaxed) const {
    std::uint32_t sum = 0;
    for (const GlobalQueue& queue : queues_) sum += queue.size(order);
    return sum;
  }

  // A P's fair share of the first level that has any; see GlobalQueue::pop_batch. Of kReturned one at a time:
  // these must not fill a local queue. Of kLatecomer, too: there they would wait behind those that were woken before.
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
  // By First.
  static constexpr Level kOrders[3][kLevels] = {
      {Level::kLatecomer, Level::kWoken, Level::kNew, Level::kReturned},
      {Level::kNew, Level::kReturned, Level::kLatecomer, Level::kWoken},
      {Level::kReturned, Level::kNew, Level::kLatecomer, Level::kWoken}};
  std::array<GlobalQueue, kLevels> queues_;
};

}  // namespace tuza::rt
