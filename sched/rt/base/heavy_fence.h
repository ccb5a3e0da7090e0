// A full memory barrier on every other thread of the process, for the side of an asymmetric Dekker that is
// seldom taken (rt/slice/handoff.h): the frequent side then needs none.
//
// membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED: an interrupt to each core that runs one of our threads;
// 20 to 30 us with two busy cores, paid by sysmon alone. Where it is not permitted (seccomp, emulators), from the
// start or from some moment on, the frequent side gets a fence of its own: bit kFence of M::taken.
//
// Rejected as a fallback: mprotect() of a dummy page. It worked by the interrupt that flushes TLBs, which
// aarch64 never sent and newer x86 processors (INVLPGB) no longer do.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Registers the process with the kernel; false if heavy_fence() would not work.
bool heavy_fence_works();

enum class Fence : std::uint8_t {
  kDone,  // what any thread stored before it is visible here, and what it loads later sees what was stored here
  kFailed,   // this time: the kernel has no memory
  kRefused,  // from now on, as by a seccomp filter that the program has installed
};
// Only where heavy_fence_works().
[[nodiscard]] Fence heavy_fence();

}  // namespace tuza::rt
