// Starts a program. Internal: not installed.
//
// By posix_spawn(): glibc makes the child by clone(CLONE_VM | CLONE_VFORK), with all signals blocked and on a stack of its
// own. Unlike fork() it takes no lock of malloc, whose holder may be suspended, and copies no page tables; unlike vfork() it
// runs nothing on the goroutine's stack. No handler runs in the child while it shares our memory: neither the one that
// suspends threads nor the program's.
#pragma once

#include <tuza/netpoll/process.h>

#include <array>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tuza::detail {

// Descriptors of this process that become 0, 1 and 2 of the child, or one of these:
inline constexpr int kFdInherited = -1;
inline constexpr int kFdNull = -2;
inline constexpr int kFdOutput = -3;  // the same as 1
using ChildFds = std::array<int, 3>;

// Blocks the thread until the program is loaded, or has been refused; in the scope of a BlockingCall. Parks.
Result<pid_t> spawn(const std::vector<std::string>& command, const ProcessOptions& options,
                    const ChildFds& fds);

}  // namespace tuza::detail
