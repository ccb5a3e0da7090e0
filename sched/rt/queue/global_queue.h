// One level of the global run queue (GRQ): a FIFO of runnable goroutines that belong to no P.
//
// It receives goroutines that overflow from an LRQ, that are readied by threads without a P, and that the
// netpoller's thread finds ready. One lock guards it; the size can be read without the lock.
//
// The queue is a ring of pointers, not a list linked through the goroutines. Goroutines that wait here have
// left the caches, and walking a list would fetch them one after another (40 ns each with 10,000 of them).
// From an array the processor fetches them in parallel.
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
  // Moves the goroutines that `which` selects to the end of `to`, in order. Concurrent readers of the sizes
  // may count some goroutines twice, and miss some if they read the size of `to` first; the caller must
  // therefore wake an M.
  void move_to(GlobalQueue& to, bool (*which)(const G& g));

  // Takes a P's fair share, oldest first, into `out` and returns its size. For `procs` Ps the share is
  // min(length / procs + 1, length / 2), at least one, and at most the room in `out`.
  std::uint32_t pop_batch(std::uint32_t procs, std::span<G*> out);

  static std::uint32_t batch_size(std::uint32_t length, std::uint32_t procs, std::uint32_t limit) {
    if (length == 0) return 0;
    return std::clamp(std::min(length / procs + 1, length / 2), 1u, limit);
  }

 private:
  void reserve(std::uint32_t more) TUZA_REQUIRES(mutex_);
  G*& slot(std::uint32_t index) TUZA_REQUIRES(mutex_) { return ring_[index & (capacity_ - 1)]; }
  // seq_cst: one half of the parking protocol (rt/idle/idle.cpp).
  void publish(std::uint32_t size) TUZA_REQUIRES(mutex_) { size_.store(size, std::memory_order_seq_cst); }

  RawMutex mutex_;
  G** ring_ TUZA_GUARDED_BY(mutex_) = nullptr;
  std::uint32_t capacity_ TUZA_GUARDED_BY(mutex_) = 0;  // a power of two
  std::uint32_t head_ TUZA_GUARDED_BY(mutex_) = 0;      // wraps around, only its low bits count
  std::atomic<std::uint32_t> size_{0};                  // written under mutex_
};

}  // namespace tuza::rt
