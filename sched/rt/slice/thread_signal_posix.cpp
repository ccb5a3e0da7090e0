// By pthread_kill(), whose signals carry no mark. Every signal that this process has sent itself counts as ours. So a
// handler of the program's for the same signal, which ours has replaced, does not see what the program itself sends.
#include <tuza/sched/rt/slice/thread_signal.h>

#include <pthread.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/sched.h>
#include <unistd.h>

#include <cerrno>

namespace tuza::rt {

bool prepare_thread_signals() { return true; }

long send_thread_signal(const M& m, int signal) {
  const Enter rt;  // the lock is one of the runtime
  // While `has_thread` is set, the thread has not been joined, and its handle is good, even if it has just ended.
  const LockGuard lock(m.sched->ms_mutex);
  return m.has_thread ? -pthread_kill(m.thread, signal) : -ESRCH;
}

// All that POSIX tells about a signal to a thread is which process has sent it. Linux gives it a code of its own, which is
// negative, like those of other signals that processes send; the codes of the kernel's own signals are positive.
bool is_thread_signal(const siginfo_t& info) { return info.si_code <= 0 && info.si_pid == getpid(); }

}  // namespace tuza::rt
