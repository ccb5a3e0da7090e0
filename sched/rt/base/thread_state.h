// The state of another thread of this process, from /proc: whether it runs, and what it waits for.
//
// For sysmon and dumps: each function makes a few system calls and allocates nothing. For a thread that has ended, the
// answers are those for a thread that does nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

// Whether the thread runs or waits for a core, rather than waiting in the kernel. `unknown` is returned if /proc
// cannot tell: it is not mounted, or the process has no descriptor left.
bool thread_is_runnable(std::int32_t thread_id, bool unknown);

// Whether the thread waits for the disk: uninterruptibly, in a page fault or in a system call on a file that a
// signal does not end with EINTR (except on a FUSE file system that supports it). A signal sent now is handled
// when the thread returns from the wait. False if /proc cannot tell.
bool thread_waits_for_disk(std::int32_t thread_id);

// The address of the futex that the thread waits for; 0: it waits for none, or /proc cannot tell.
std::uintptr_t futex_waited_for(std::int32_t thread_id);

// The system call in which a thread waits.
struct WaitingCall {
  std::int64_t number = -1;  // -1: a page fault, or unknown
  std::uintptr_t at = 0;     // the instruction behind it; 0: the thread waits in none, or /proc cannot tell
  bool operator==(const WaitingCall&) const = default;
};
WaitingCall waiting_call(std::int32_t thread_id);

// For thread_waits_for_disk(). `line`: the system call of a thread, as in /proc/self/task/N/syscall. True for
// calls that read, sync or prefetch files or write them at an offset, and for -1, which means a page fault.
bool is_call_on_file(std::string_view line);

}  // namespace tuza::rt
