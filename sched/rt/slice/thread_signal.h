// The signal that sysmon and dumps send to the thread of an M (rt/slice/preempt_signal.h), and how its receiver tells it from
// signals of others.
#pragma once

#include <signal.h>
#include <tuza/sched/rt/m.h>

namespace tuza::rt {

// The system's real-time signals. macOS has none: the first is behind the last.
struct RealTimeSignals {
  int first, last;
};
inline RealTimeSignals real_time_signals() {
#if defined(SIGRTMIN)
  return {SIGRTMIN, SIGRTMAX};
#else
  return {NSIG, NSIG - 1};
#endif
}

// Call at the start of a run, before a signal is sent. False: none can be.
bool prepare_thread_signals();

// 0 or -errno: -EPERM or -ENOSYS if the system refuses to send signals to threads, -ESRCH if `m` has no thread. Any
// thread. Blocks the M for a system call.
long send_thread_signal(const M& m, int signal);

// Whether send_thread_signal() has sent the signal. Async-signal-safe.
bool is_thread_signal(const siginfo_t& info);

}  // namespace tuza::rt
