// The set of idle Ps: one bit per P, taken and put back without a lock.
//
// The thread that clears a bit owns that P. The bits are one half of the parking protocol (rt/idle/idle.cpp).
// put(), take() and any() are sequentially consistent, so that a thread that goes idle and then looks for
// work cannot miss work whose submitter saw no idle P.
//
// The count is only approximate. It is raised after the bit is set and lowered after the bit is cleared. It
// may therefore be wrong by the number of operations under way, for as long as the threads that will correct
// it are descheduled. Never loop until it is right.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace tuza::rt {

inline constexpr int kMaxProcsLimit = 256;

class IdleMask {
 public:
  void put(int id) {
    words_[word(id)].fetch_or(bit(id), std::memory_order_seq_cst);
    count_.fetch_add(1, std::memory_order_seq_cst);
  }
  // True: the caller now owns P `id`.
  bool take(int id) {
    if ((words_[word(id)].load(std::memory_order_seq_cst) & bit(id)) == 0) return false;
    if ((words_[word(id)].fetch_and(~bit(id), std::memory_order_seq_cst) & bit(id)) == 0) return false;
    count_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }
  // Takes any idle P below `limit`, preferably `preferred` (its caches are warm); -1 if there is none.
  int take_any(int preferred, int limit) {
    if (preferred >= 0 && preferred < limit && take(preferred)) return preferred;
    for (int w = 0; w * 64 < limit; ++w) {
      std::uint64_t bits = words_[static_cast<std::size_t>(w)].load(std::memory_order_seq_cst);
      while (bits != 0) {
        const int id = w * 64 + std::countr_zero(bits);
        if (id >= limit) break;
        if (take(id)) return id;
        bits &= bits - 1;
      }
    }
    return -1;
  }
  // Whether any P below `limit` is idle.
  [[nodiscard]] bool any(int limit) const {
    for (int w = 0; w * 64 < limit; ++w) {
      const std::uint64_t bits = words_[static_cast<std::size_t>(w)].load(std::memory_order_seq_cst);
      const int beyond = 64 - (limit - w * 64);
      if ((beyond > 0 ? bits << static_cast<unsigned>(beyond) : bits) != 0) return true;
    }
    return false;
  }
  [[nodiscard]] bool contains(int id) const {
    return (words_[word(id)].load(std::memory_order_acquire) & bit(id)) != 0;
  }
  [[nodiscard]] int count(std::memory_order order = std::memory_order_relaxed) const {
    return count_.load(order);
  }

 private:
  static std::size_t word(int id) { return static_cast<std::size_t>(id) / 64; }
  static std::uint64_t bit(int id) { return std::uint64_t{1} << (static_cast<unsigned>(id) % 64); }

  std::array<std::atomic<std::uint64_t>, kMaxProcsLimit / 64> words_{};
  std::atomic<int> count_{0};
};

}  // namespace tuza::rt
