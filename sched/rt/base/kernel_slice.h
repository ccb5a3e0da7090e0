// The time slices that the kernel gives to threads of this process.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Sets how long the kernel lets a normal thread run before it considers another thread (EEVDF, Linux 6.12 and
// later; needs no privilege). A thread with a short slice gets a core sooner after a wake-up; a thread with a
// long slice is interrupted less often. `thread_id` 0 means the calling thread. Priorities and other scheduling
// classes stay as they are. Older kernels ignore the hint.
void hint_kernel_slice(std::int32_t thread_id, std::int64_t slice_ns);

// Ms with a P answer requests, Ms in the lane compute, and sysmon must run on time for both. A thread that has
// received too little CPU gets up to twice its slice before others: with slices of 20 ms in the lane, other
// threads, sysmon among them, were sometimes 10 to 20 ms late. The slices must not be too short either, because
// the kernel does not move a thread that ran within the last half millisecond to an idle core: two threads with
// slices of 0.2 ms that alternated on one core stayed there.
inline constexpr std::int64_t kSysmonKernelSliceNs = 100'000;
inline constexpr std::int64_t kWorkerKernelSliceNs = 1'000'000;
inline constexpr std::int64_t kLaneKernelSliceNs = 4'000'000;

}  // namespace tuza::rt
