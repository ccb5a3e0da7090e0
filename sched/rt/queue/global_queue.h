// The global run queue (GRQ): goroutines that belong to no P.
//
// What overflows from an LRQ, what is readied by threads that hold no P, what the netpoller thread finds.
// FIFO under one lock; the size can be read without it.
//
// A ring of pointers, not a list through the goroutines: those that wait here have left the caches, and
// following a list would fetch them one after another (40 ns each with 10,000 of them). From an array the
// processor fetches them at once.
//
// Thread-safe. Blocks the M for a few instructions; growing the ring maps memory.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/queue/g_list.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

class GlobalQueue {
 public:
  GlobalQueue() = default;
  GlobalQueue(const GlobalQueue&) = delete;
  GlobalQueue& operator=(const GlobalQueue&) = delete;
  ~GlobalQueue();

  [[nodiscard]] std::uint32_t size(std::memory_order order = std::memory_order_relaxed) const {
    return size_.load(order);
  }

  void push(G* g) { push(std::span(&g, 1)); }
  void push(std::span<G* const> batch);
  void push(GList&& batch);
  void push_front(G* g);
  // Moves those that `which` chooses to the end of `to`, in their order. Whoever looks at the sizes meanwhile may
  // count some twice; and miss some if it looks at `to` first, so that the caller has to wake one.
  void move_to(GlobalQueue& to, bool (*which)(const G& g));

  // A P's fair share, oldest first, into `out`; returns how many. For `procs` Ps that is
  // min(length / procs + 1, length / 2), at least one, and at most the room in `out`.
  std::uint32_t pop_batch(std::uint32_t procs, std::span<G*> out);

  static std::uint32_t batch_size(std::uint32_t length, std::uint32_t procs, std::uint32_t limit) {
    if (length == 0) return 0;
    return std::clamp(std::min(length / procs + 1, length / 2), 1u, limit);
  }

 private:
  // All with mutex_ held.
  void reserve(std::uint32_t more);
  G*& slot(std::uint32_t index) { return ring_[index & (capacity_ - 1)]; }
  // seq_cst: one half of the parking protocol, see rt/idle/idle.cpp.
  void publish(std::uint32_t size) { size_.store(size, std::memory_order_seq_cst); }

  RawMutex mutex_;
  G** ring_ = nullptr;                  // guarded by mutex_
  std::uint32_t capacity_ = 0;          // guarded by mutex_; a power of two
  std::uint32_t head_ = 0;              // guarded by mutex_; runs over, only its low bits count
  std::atomic<std::uint32_t> size_{0};  // written under mutex_
};

}  // namespace tuza::rt
