// Suspending a thread in the middle of user code, and letting it go on.
//
// Sysmon asks (kRun -> kAsked) and sends a signal. The handler, on the thread itself and on its signal stack,
// decides: only outside the runtime, only where a goroutine runs without a P, and not inside NoPreempt, it
// stops (kAsked -> kStopped) and waits on a futex; otherwise it refuses (kAsked -> kRun). The goroutine keeps
// its thread, and with it registers, thread-locals and everything libraries keep there: stacks are never
// switched from a handler, which could interrupt anything.
//
//          sysmon asks                handler agrees
//   kRun ---------------> kAsked ---------------------> kStopped
//    ^ ^--- refused, or withdrawn ---'                     |
//    `----------------------- sysmon resumes --------------'
//
// The wait ends in any state but kStopped: after a resume sysmon may ask again before the thread has woken,
// and the signal for that is held back until this handler has returned. A handler that waited for kRun would
// sleep on for ever with the second signal pending behind itself.
//
// The handler touches atomics of its own M and a futex; errno stays as it was, as nothing here sets it.
//
// Which signal: SIGURG, which is ignored where nobody handles it; TUZA_PREEMPT_SIGNAL chooses another. A
// handler that was installed before ours is called for signals that are not ours, which carry a mark; a
// default action is not taken any more. If somebody replaces ours while the runtime is on, we notice before
// the next signal is sent, and move to a free real-time signal; if there is none, or the system refuses to send
// signals (seccomp), nobody is suspended from then on. The new handler may call ours, so ours must never call it:
// such a signal is left alone by later runtimes too.
#pragma once

#include <tuza/sched/rt/m.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

enum class Suspend : std::uint32_t { kRun, kAsked, kStopped };

class PreemptSignal {
 public:
  // With signal 0 nobody is ever suspended. The calling thread's mask is left alone. `mask`: what Ms block.
  void install(int signal, const sigset_t& mask);
  void remove();

  // Whether threads can be suspended.
  [[nodiscard]] bool works() const { return number_.load(std::memory_order_relaxed) != 0; }
  // Logs what has happened since the last call. Not by sysmon: the program's log may wait for a lock whose
  // holder is suspended, and sysmon is who lets it go on.
  void report();
  // In an M's thread, before it runs goroutines: the signal must reach it.
  void unblock();

  // -- Sysmon only.
  // Sends the signal and no more. False: there is none.
  bool send(M& m);
  // Asks the thread of `m` to stop. False: it has no signal to do it with.
  bool ask(M& m);
  // Takes an ask back that has not been answered.
  static void withdraw(M& m);
  static void resume(M& m);

 private:
  enum class Lost : std::uint8_t { kReplaced, kNoHandler, kNoSending };
  static bool take(int signal);
  bool still_ours();
  bool move_from(int signal, Lost what);
  [[nodiscard]] int take_unused() const;

  std::atomic<int> number_{0};
  std::atomic<int> lost_number_{0};  // the signal that cannot be used any more, until it is reported
  std::atomic<Lost> lost_{Lost::kReplaced};
  sigset_t mask_{};
  long pid_ = 0;
};

}  // namespace tuza::rt
