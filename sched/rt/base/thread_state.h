// What /proc says about another thread of this process: whether it runs, and what it waits for.
//
// For sysmon: a few system calls each, nothing allocated. The thread must not have ended, or the answers are
// those of "does nothing".
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

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

}  // namespace tuza::rt
