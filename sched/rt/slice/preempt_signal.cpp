#include <tuza/sched/rt/slice/preempt_signal.h>

#include <signal.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/interrupted.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/sample.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/thread_signal.h>

#include <array>
#include <cerrno>

namespace tuza::rt {
namespace {

constexpr auto kRun = static_cast<std::uint32_t>(Suspend::kRun);
constexpr auto kAsked = static_cast<std::uint32_t>(Suspend::kAsked);
constexpr auto kStopped = static_cast<std::uint32_t>(Suspend::kStopped);

// Beyond the highest number of a signal: 64 on Linux, 126 on FreeBSD.
constexpr std::size_t kSignals = 128;
#if defined(__FreeBSD__)
static_assert(SIGRTMAX < kSignals);
#endif

// The handlers that ours has replaced, by signal. Written before ours is installed, and never cleared: a
// signal may still be on its way.
std::array<struct sigaction, kSignals> g_before{};
// Signals that have had our handler and were not given back. Owner: the thread that installs.
std::array<bool, kSignals> g_ours{};

bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// True if the thread may be stopped: its goroutine is in user code and has no P. No other thread can change
// any of this now: kTaking would be an attempt of sysmon's, which needs a P to take. In the child of a fork
// no thread exists that would resume it.
bool may_stop(const M& m) {
  return m.in_rt.load(std::memory_order_relaxed) == 0 &&
         (m.taken.load(std::memory_order_relaxed) & (taken::kTaking | taken::kGone | taken::kForked)) ==
             taken::kGone &&
         m.current->no_preempt.get() == 0;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = g_before[static_cast<std::size_t>(signal)];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

void on_preempt(int signal, siginfo_t* info, void* context) {
  // Answer whichever signal it was: of two that come together the kernel keeps one. One of ours may arrive when its
  // request has already been answered or withdrawn.
  if (!is_thread_signal(*info)) pass_on(signal, info, context);
  M* m = current_m();
  if (m == nullptr) return;
  m->sched->stalls.answer(*m);
  answer_sample(*m, context);
  std::uint32_t asked = kAsked;
  if (m->suspend.load(std::memory_order_acquire) != kAsked) return;
  if (!may_stop(*m)) {
    m->suspend.compare_exchange_strong(asked, kRun, std::memory_order_relaxed);
    return;
  }
  m->stopped_in_code = !interrupted_at_futex(context);
  if (m->suspend.compare_exchange_strong(asked, kStopped, std::memory_order_acq_rel)) {
    while (m->suspend.load(std::memory_order_acquire) == kStopped) {
      futex_wait(m->suspend, kStopped);
      answer_sample(*m, context);
    }
  }
}

// The program has replaced our handler since an earlier runtime installed it.
bool is_replaced(int signal) {
  struct sigaction now{};
  return g_ours[static_cast<std::size_t>(signal)] && sigaction(signal, nullptr, &now) == 0 &&
         is_handled(now) && now.sa_sigaction != &on_preempt;
}

}  // namespace

bool PreemptSignal::take(int signal) {
  struct sigaction before{};
  if (sigaction(signal, nullptr, &before) != 0) return false;
  if (before.sa_sigaction == &on_preempt) return true;  // installed by an earlier runtime
  const auto index = static_cast<std::size_t>(signal);
  if (g_ours[index] && is_handled(before)) return false;
  g_before[index] = before;
  struct sigaction action{};
  action.sa_sigaction = &on_preempt;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) return false;
  g_ours[index] = true;
  return true;
}

void PreemptSignal::install(int signal, const sigset_t& mask) {
  mask_ = mask;
  if (signal != 0 && !prepare_thread_signals()) {
    move_from(signal, Lost::kNoSending);
    report();
  } else if (signal == 0 || take(signal)) {
    number_.store(signal, std::memory_order_relaxed);
  } else {
    move_from(signal, is_replaced(signal) ? Lost::kReplaced : Lost::kNoHandler);
    report();
  }
}

void PreemptSignal::remove() {
  const int signal = number_.exchange(0, std::memory_order_relaxed);
  if (signal == 0) return;
  struct sigaction now{};
  if (sigaction(signal, nullptr, &now) != 0) return;
  // A signal that is still on its way finds no M that was asked; but it must find a handler unless it is
  // SIGURG.
  if (signal != SIGURG || now.sa_sigaction != &on_preempt) return;
  g_ours[SIGURG] = false;
  sigaction(signal, &g_before[SIGURG], nullptr);
}

void PreemptSignal::unblock() {
  const int signal = number_.load(std::memory_order_relaxed);
  if (signal == 0) return;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

bool PreemptSignal::still_ours() {
  const int signal = number_.load(std::memory_order_relaxed);
  if (signal == 0) return false;
  struct sigaction now{};
  // If the system refuses the query (a seccomp filter), it does not let the program replace the handler
  // either.
  if (sigaction(signal, nullptr, &now) != 0 || now.sa_sigaction == &on_preempt) return true;
  return move_from(signal, Lost::kReplaced);
}

bool PreemptSignal::move_from(int signal, Lost what) {
  const int moved = what == Lost::kNoSending ? 0 : take_unused();
  number_.store(moved, std::memory_order_relaxed);
  lost_.store(what, std::memory_order_relaxed);
  lost_number_.store(signal, std::memory_order_release);
  active()->maker.request(MMaker::Request::kReport);
  return moved != 0;
}

// An unhandled real-time signal ends the process, so only a signal that nobody uses will do; and it must not
// be in the mask of the Ms. 0: there is none.
int PreemptSignal::take_unused() const {
  for (int signal = real_time_signals().last - 1; signal > real_time_signals().first; --signal) {
    struct sigaction now{};
    if (sigaction(signal, nullptr, &now) != 0) continue;
    const bool unused = now.sa_sigaction == &on_preempt || (!is_handled(now) && now.sa_handler == SIG_DFL);
    if (unused && sigismember(&mask_, signal) == 0 && take(signal)) return signal;
  }
  return 0;
}

void PreemptSignal::report() {
  const int lost = lost_number_.exchange(0, std::memory_order_acquire);
  if (lost == 0) return;
  const int moved = number_.load(std::memory_order_relaxed);
  const Lost what = lost_.load(std::memory_order_relaxed);
  Line line(Line::kNowhere);
  switch (what) {
    case Lost::kReplaced: line << "tuza: the handler of signal " << lost << " was replaced"; break;
    case Lost::kNoHandler: line << "tuza: the system refuses a handler for signal " << lost; break;
    case Lost::kNoSending:
      line << "tuza: the system refuses to send signal " << lost << " to a thread";
      break;
  }
  line << "; goroutines are now suspended by ";
  moved != 0 ? line << "signal " << moved : line << "none";
  log_line(LogLevel::kWarning, line.text());
}

bool PreemptSignal::poke(const M& m) const {
  const int signal = number_.load(std::memory_order_relaxed);
  struct sigaction now{};
  if (signal == 0 || m.thread_id == 0) return false;
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction != &on_preempt) return false;
  return send_thread_signal(m, signal) == 0;
}

bool PreemptSignal::send(M& m) {
  if (!still_ours()) return false;
  const int signal = number_.load(std::memory_order_relaxed);
  const long sent = send_thread_signal(m, signal);
  // The suspended threads would wait for ever for others to make room.
  if (sent == -EPERM || sent == -ENOSYS) move_from(signal, Lost::kNoSending);
  return sent == 0;
}

bool PreemptSignal::ask(M& m) {
  std::uint32_t run = kRun;
  if (!m.suspend.compare_exchange_strong(run, kAsked, std::memory_order_acq_rel)) return false;
  const bool sent = send(m);
  if (!sent) withdraw(m);
  return sent;
}

void PreemptSignal::withdraw(M& m) {
  std::uint32_t asked = kAsked;
  m.suspend.compare_exchange_strong(asked, kRun, std::memory_order_relaxed);
}

void PreemptSignal::resume(M& m) {
  m.suspend.store(kRun, std::memory_order_release);
  futex_wake(m.suspend, 1);
}

}  // namespace tuza::rt
