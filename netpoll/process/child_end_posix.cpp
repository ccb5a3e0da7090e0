#include <tuza/netpoll/process/child_end.h>

#include <sys/wait.h>
#include <time.h>
#include <tuza/sched/arch/last_error.h>

#include <cerrno>

namespace tuza::detail {

long open_pidfd(pid_t) { return -ENOSYS; }

// macOS tells of a child that has only stopped, too. One that does so while nobody else waits is looked at again.
long wait_for_end(int, pid_t child, siginfo_t* info, int flags) {
  constexpr struct timespec kNap{.tv_sec = 0, .tv_nsec = 10'000'000};
  for (;;) {
    *info = {};
    if (::waitid(P_PID, static_cast<id_t>(child), info, flags) != 0) return -last_error();
    const int code = info->si_code;
    if (info->si_pid == 0 || code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED) return 0;
    *info = {};
    if ((flags & WNOHANG) != 0) return 0;
    ::nanosleep(&kNap, nullptr);
  }
}

}  // namespace tuza::detail
