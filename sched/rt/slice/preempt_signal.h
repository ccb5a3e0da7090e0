// Suspends a thread in the middle of user code, and resumes it.
//
// Sysmon asks (kRun -> kAsked) and sends a signal. The handler runs on the thread itself, on its signal
// stack, and decides. It stops (kAsked -> kStopped) and waits on a futex only if the thread is outside the
// runtime, runs a goroutine without a P, and is not inside NoPreempt; otherwise it refuses (kAsked -> kRun).
// The goroutine keeps its thread, and with it registers, thread-locals and whatever libraries keep there.
// Stacks are never switched from a handler, which could interrupt anything.
//
//          sysmon asks                handler agrees
//   kRun ---------------> kAsked ---------------------> kStopped
//    ^ ^--- refused, or withdrawn ---'                     |
//    `----------------------- sysmon resumes --------------'
//
// The wait ends in any state but kStopped. After a resume, sysmon may ask again before the thread has woken,
// and the signal for that is blocked until this handler has returned. A handler that waited for kRun would
// sleep for ever with the second signal pending behind it.
//
// The handler touches atomics of its own M and a futex, and reads the interrupted goroutine's own stack and
// activity if a report asks for them (rt/report/sample.h, rt/report/stall_report.h), which it also does while
// the thread is stopped. It takes no lock and allocates nothing. errno stays unchanged, as nothing here sets
// it.
//
// The signal is SIGURG, which is ignored by default; TUZA_PREEMPT_SIGNAL chooses another. Signals that
// others have sent (rt/slice/thread_signal.h) go to the handler that was installed before ours; a default action is no
// longer taken. If the program replaces our handler while the runtime is on, sysmon notices before it sends
// the next signal, and moves to a free real-time signal. If there is none, or the system refuses to send
// signals (seccomp), no thread is suspended from then on. The new handler may call ours, so ours must never
// call it: later runtimes leave such a signal alone too.
#pragma once

#include <tuza/sched/rt/m.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

enum class Suspend : std::uint32_t { kRun, kAsked, kStopped };

class PreemptSignal {
 public:
  // With signal 0 no thread is ever suspended. The calling thread's mask is unchanged. `mask`: the signals
  // that Ms block.
  void install(int signal, const sigset_t& mask);
  void remove();

  // Whether threads can be suspended.
  [[nodiscard]] bool works() const { return number_.load(std::memory_order_relaxed) != 0; }
  // Logs what has happened since the last call. Sysmon must not call it: the program's log may wait for a
  // lock whose holder is suspended, and sysmon is the thread that would resume the holder.
  void report();
  // Call on an M's thread before it runs goroutines: the signal must be able to reach the thread.
  void unblock();
  // Only sends the signal, for rt/report/sample.h. False: it could not be sent; that changes nothing, sysmon
  // will notice by itself. Any thread.
  [[nodiscard]] bool poke(const M& m) const;

  // -- Sysmon only.
  // Only sends the signal. False: there is none.
  bool send(M& m);
  // Asks the thread of `m` to stop. False: the signal could not be sent, or `m` was not in kRun.
  bool ask(M& m);
  // Withdraws a request that has not been answered.
  static void withdraw(M& m);
  static void resume(M& m);

 private:
  enum class Lost : std::uint8_t { kReplaced, kNoHandler, kNoSending };
  static bool take(int signal);
  bool still_ours();
  bool move_from(int signal, Lost what);
  [[nodiscard]] int take_unused() const;

  std::atomic<int> number_{0};
  std::atomic<int> lost_number_{0};  // the signal that became unusable, until it is reported
  std::atomic<Lost> lost_{Lost::kReplaced};
  sigset_t mask_{};
};

}  // namespace tuza::rt
