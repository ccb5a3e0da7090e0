// What the kernel tells about another thread of this process, and what it can be told.
//
// For sysmon: a few system calls each, nothing allocated. The thread must not have ended, or the answers are
// those of "does nothing".
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

// CPU time that the thread has used, ns; 0 if there is no such thread. 0 means the calling thread.
std::int64_t thread_cpu_ns(std::int32_t thread_id);

// Whether the thread runs or waits for a core, rather than for something in the kernel. `unknown` when /proc
// does not say: it may not be mounted, or the process has no descriptor left.
bool thread_is_runnable(std::int32_t thread_id, bool unknown);

// Whether the thread waits for the disk: uninterruptibly, in a page fault or in a system call on a file that a signal
// does not end with EINTR (on FUSE it may, where the file system wants it so). What is sent to it now it sees when it
// comes back from there. False if /proc does not say.
bool thread_waits_for_disk(std::int32_t thread_id);

// The address of the futex that the thread waits for; 0: it does not, or /proc does not say.
std::uintptr_t futex_waited_for(std::int32_t thread_id);

// For it: what /proc says of the system call that a thread is in. True for those that read and write files at given
// places, and for none at all: a page fault.
bool is_call_on_file(std::string_view line);

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
