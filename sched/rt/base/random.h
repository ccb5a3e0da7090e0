// Random numbers for scheduling decisions. Cheap, and not for secrets.
//
// Source: G. Marsaglia, "Xorshift RNGs" (2003), with the multiplication of xorshift64*.
// Not thread-safe: each M has its own.
#pragma once

#include <cstdint>

namespace tuza::rt {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 | 1) {}

  std::uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545f4914f6cdd1d) >> 32);
  }
  // Uniform in [0, bound), bound > 0, by multiplication (D. Lemire 2019). The slight bias is harmless here.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace tuza::rt
