// An address and a tag of 16 bits in one word, which can be compared and exchanged at once.
//
// A user's address has 48 bits on x86-64 and aarch64: Linux gives out higher ones, where the processor has them, only to
// a program that asks mmap for one. The tag takes the place of the other bits.
#pragma once

#include <cstdint>

namespace tuza::rt {

constexpr int kAddressBits = 48;
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kAddressBits) - 1;

// Of `tag` the lowest 16 bits count.
inline std::uint64_t tagged(const void* address, std::uint64_t tag) {
  return reinterpret_cast<std::uintptr_t>(address) | tag << kAddressBits;
}

constexpr std::uint64_t tag_of(std::uint64_t word) { return word >> kAddressBits; }

template <typename T>
T* address_of(std::uint64_t word) {
  return reinterpret_cast<T*>(word & kAddressMask);
}

}  // namespace tuza::rt
