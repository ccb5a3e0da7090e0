#include <tuza/netpoll/process/child_end.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::detail {

long open_pidfd(pid_t child) { return sys::invoke(SYS_pidfd_open, child, 0); }

long wait_for_end(int pidfd, pid_t child, siginfo_t* info, int flags) {
  return pidfd >= 0 ? sys::invoke(SYS_waitid, P_PIDFD, pidfd, info, flags, nullptr)
                    : sys::invoke(SYS_waitid, P_PID, child, info, flags, nullptr);
}

}  // namespace tuza::detail
