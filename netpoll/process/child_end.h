// How the end of a child becomes known.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace tuza::detail {

// A descriptor that becomes readable when the child has ended, or -errno: -ENOSYS where there is no such thing.
long open_pidfd(pid_t child);
// waitid(2) for that descriptor; if it is negative, for the child's number, and then it may block. 0, or -errno.
long wait_for_end(int pidfd, pid_t child, siginfo_t* info, int flags);

}  // namespace tuza::detail
