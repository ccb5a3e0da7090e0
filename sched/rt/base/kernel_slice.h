// The time slices that the kernel gives to threads of this process.
#pragma once

#include <cstdint>

namespace tuza::rt {

// How long the kernel lets an ordinary thread run before it looks whether another has a better claim (EEVDF,
// Linux 6.12 and later; no privilege needed). A short slice gets a core sooner after a wake-up, a long one is
// interrupted less. 0 means the calling thread. Priorities and other scheduling classes are left as they
// are; older kernels ignore it.
void hint_kernel_slice(std::int32_t thread_id, std::int64_t slice_ns);

// Ms with a P answer; those in the lane compute; sysmon must be in time for both. Of what a thread has got too
// little the kernel gives it up to twice its slice before others: with slices of 20 ms in the lane these came
// 10 to 20 ms late now and then, sysmon among them. And no thread is moved to a core that has nothing to do
// while it has run within half a millisecond: two with slices of 0.2 ms, by turns on one core, stayed there.
inline constexpr std::int64_t kSysmonKernelSliceNs = 100'000;
inline constexpr std::int64_t kWorkerKernelSliceNs = 1'000'000;
inline constexpr std::int64_t kLaneKernelSliceNs = 4'000'000;

}  // namespace tuza::rt
