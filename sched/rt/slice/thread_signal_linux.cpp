#include <tuza/sched/rt/slice/thread_signal.h>

#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <atomic>

namespace tuza::rt {
namespace {

// Our signals carry its address. Relaxed: it is written before the threads exist that read it.
std::atomic<long> g_process{0};

}  // namespace

bool prepare_thread_signals() {
  g_process.store(sys::invoke(SYS_getpid), std::memory_order_relaxed);
  return g_process.load(std::memory_order_relaxed) > 0;
}

long send_thread_signal(const M& m, int signal) {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_value.sival_ptr = &g_process;
  return sys::invoke(SYS_rt_tgsigqueueinfo, g_process.load(std::memory_order_relaxed), m.thread_id.get(),
                     signal, &info);
}

bool is_thread_signal(const siginfo_t& info) {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &g_process;
}

}  // namespace tuza::rt
