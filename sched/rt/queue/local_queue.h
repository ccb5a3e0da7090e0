// The local run queue (LRQ) of a P: a bounded ring with one owner and any number of thieves.
//
// The owner pushes at the tail and pops at the head; thieves take half from the head. The two ends have
// separate types, so that a thread that does not own the queue cannot push: the M that holds the P makes an
// Owner; any thread may make a Thief.
//
//        head                      tail
//          v                         v
//   ...[   |  g  |  g  |  g  |  g  |   ]...        head <= tail, tail - head <= kCapacity
//       thieves and owner take ->   owner puts ->
//
// Indices are 64-bit and never wrap (for 584 years, at one operation per nanosecond). A thief that slept
// between reading the head and its compare-and-swap therefore cannot mistake a wrapped head for the head it
// read.
//
// Why it is correct:
//  - The owner writes a slot only when tail - head < kCapacity, with a head that it loaded with acquire. Pop
//    and steal release the head after they have read the slot, so the slot's old content has been read.
//  - tail.store(release) in push pairs with tail.load(acquire) in steal: a thief that sees the new tail sees
//    the slot, and the goroutine behind it.
//  - Exactly one compare-and-swap, of the head from an element's index to a later one, takes that element. A
//    thief copies first and swaps afterwards. If the swap succeeds, no other thread has moved the head, so no
//    slot between the old and the new head was reused. If the swap fails, the thief discards the copy. Slots
//    are atomics because a discarded copy may race with the owner's next write.
//  - A thief may read a head and a later tail that are further apart than kCapacity, because the head moved
//    in between. It must not trust that length, and starts again.
//
// Source: the Go runtime's runqput/runqget/runqgrab (proc.go), which use 32-bit indices. The capacity is a
// template parameter so that the tests can use a capacity of 4, at which every wrap-around of the ring
// happens at once.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>

namespace tuza::rt {

template <class T, std::uint32_t kCapacity>
class LocalQueue {
  static_assert(std::has_single_bit(kCapacity) && kCapacity >= 4);

 public:
  // The number of elements at some moment during the call. Any thread may call it.
  [[nodiscard]] std::uint32_t size() const {
    // Head first: a tail that is read later is never behind this head.
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    const std::uint64_t length = tail_.load(std::memory_order_acquire) - head;
    return length > kCapacity ? kCapacity : static_cast<std::uint32_t>(length);
  }
  [[nodiscard]] bool empty() const { return size() == 0; }

  class Owner;
  class Thief;

 private:
  std::atomic<T*>& slot(std::uint64_t index) { return slots_[index % kCapacity]; }

  // Head and tail have cache lines of their own: thieves contend for the head, the owner writes the tail.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // written by the owner only
  std::array<std::atomic<T*>, kCapacity> slots_{};
};

// The owner's end. Thread-unsafe: only the M that holds the P may use it.
template <class T, std::uint32_t kCapacity>
class LocalQueue<T, kCapacity>::Owner {
 public:
  explicit Owner(LocalQueue& queue) : q_(queue) {}

  // Returns false if the queue is full: the caller then moves half of it to the global queue (take_half).
  [[nodiscard]] bool push(T* item) {
    const std::uint64_t tail = q_.tail_.load(std::memory_order_relaxed);
    if (tail - q_.head_.load(std::memory_order_acquire) >= kCapacity) return false;
    q_.slot(tail).store(item, std::memory_order_relaxed);
    q_.tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Returns null if the queue is empty.
  [[nodiscard]] T* pop() {
    std::uint64_t head = q_.head_.load(std::memory_order_acquire);
    while (head != q_.tail_.load(std::memory_order_relaxed)) {
      T* item = q_.slot(head).load(std::memory_order_relaxed);
      if (q_.head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
        return item;
      }
    }
    return nullptr;
  }

  // Takes the older half of a full queue into `out` and returns its size. Returns 0 if a thief was faster,
  // which means that there is room again.
  [[nodiscard]] std::uint32_t take_half(std::span<T*, kCapacity / 2> out) {
    std::uint64_t head = q_.head_.load(std::memory_order_acquire);
    const std::uint64_t tail = q_.tail_.load(std::memory_order_relaxed);
    if (tail - head < kCapacity) return 0;
    for (std::uint32_t i = 0; i < kCapacity / 2; ++i) {
      out[i] = q_.slot(head + i).load(std::memory_order_relaxed);
    }
    const bool taken = q_.head_.compare_exchange_strong(head, head + kCapacity / 2, std::memory_order_acq_rel,
                                                        std::memory_order_relaxed);
    return taken ? kCapacity / 2 : 0;
  }

 private:
  friend class Thief;
  LocalQueue& q_;
};

// A thief's end. Thread-safe.
template <class T, std::uint32_t kCapacity>
class LocalQueue<T, kCapacity>::Thief {
 public:
  explicit Thief(LocalQueue& victim) : q_(victim) {}

  // Moves half (rounded up) of the victim's elements into `into`, which must be empty, and returns the
  // youngest of them instead of queueing it. Returns null if there was nothing to take.
  [[nodiscard]] T* steal_half(Owner into) {
    LocalQueue& mine = into.q_;
    const std::uint64_t tail = mine.tail_.load(std::memory_order_relaxed);
    std::uint64_t head = q_.head_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint64_t length = q_.tail_.load(std::memory_order_acquire) - head;
      if (length == 0) return nullptr;
      const std::uint64_t n = length - length / 2;
      if (n > kCapacity / 2) {  // head and tail were read at different moments
        head = q_.head_.load(std::memory_order_acquire);
        continue;
      }
      for (std::uint64_t i = 0; i < n; ++i) {
        T* item = q_.slot(head + i).load(std::memory_order_relaxed);
        mine.slot(tail + i).store(item, std::memory_order_relaxed);
      }
      if (q_.head_.compare_exchange_strong(head, head + n, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
        T* youngest = mine.slot(tail + n - 1).load(std::memory_order_relaxed);
        mine.tail_.store(tail + n - 1, std::memory_order_release);
        return youngest;
      }
    }
  }

 private:
  LocalQueue& q_;
};

}  // namespace tuza::rt
