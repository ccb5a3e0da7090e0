// The set of idle Ps: one bit each, taken and put back without a lock.
//
// Whoever clears a bit owns that P. The count is raised after the bit is set and lowered after it is
// cleared, so count() may for a moment be wrong by the operations under way; it can never stay wrong.
//
// The count is one half of the parking protocol (rt/idle.cpp): put() is sequentially consistent, so that a
// thread that goes idle and then looks for work cannot miss work whose submitter saw no idle P.
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
    words_[word(id)].fetch_or(bit(id), std::memory_order_acq_rel);
    count_.fetch_add(1, std::memory_order_seq_cst);
  }
  // True: the caller owns P `id` now.
  bool take(int id) {
    if ((words_[word(id)].load(std::memory_order_relaxed) & bit(id)) == 0) return false;
    if ((words_[word(id)].fetch_and(~bit(id), std::memory_order_acq_rel) & bit(id)) == 0) return false;
    count_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }
  // Any idle P below `limit`, `preferred` if it is idle (its caches are warm); -1 if there is none.
  int take_any(int preferred, int limit) {
    if (preferred >= 0 && preferred < limit && take(preferred)) return preferred;
    for (int w = 0; w * 64 < limit; ++w) {
      std::uint64_t bits = words_[static_cast<std::size_t>(w)].load(std::memory_order_acquire);
      while (bits != 0) {
        const int id = w * 64 + std::countr_zero(bits);
        if (id >= limit) break;
        if (take(id)) return id;
        bits &= bits - 1;
      }
    }
    return -1;
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
