// A full memory barrier on every other thread of the process: the slow side of an asymmetric Dekker protocol
// (rt/slice/handoff.h), whose fast side then needs no fence.
//
// membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED, interrupts each core that runs a thread of this process. It
// takes 20 to 30 us with two busy cores, which only sysmon pays. If it is not permitted (seccomp, emulators),
// from the start or later, the fast side executes a fence: bit kFence of M::taken.
//
// Rejected as a fallback: mprotect() of a dummy page. It relied on the interrupts that flush TLBs, which aarch64
// never sent and newer x86 processors (INVLPGB) no longer send.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Registers the process with the kernel; false if heavy_fence() would not work.
bool heavy_fence_works();

enum class Fence : std::uint8_t {
  kDone,  // all earlier stores of other threads are visible here, and their later loads see our earlier stores
  kFailed,   // failed this time: the kernel has no memory
  kRefused,  // fails from now on, for example because the program has installed a seccomp filter
};
// Call only if heavy_fence_works().
[[nodiscard]] Fence heavy_fence();

}  // namespace tuza::rt
