#include <tuza/netpoll/process/child_end.h>

#include <sys/wait.h>
#include <tuza/sched/arch/last_error.h>

#include <cerrno>

namespace tuza::detail {

long open_pidfd(pid_t) { return -ENOSYS; }

long wait_for_end(int, pid_t child, siginfo_t* info, int flags) {
  return ::waitid(P_PID, static_cast<id_t>(child), info, flags) == 0 ? 0 : -last_error();
}

}  // namespace tuza::detail
