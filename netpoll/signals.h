// Public header, part of <tuza/net.h>.
//
// Waiting for signals: a goroutine receives SIGTERM and similar signals.
//
//     auto signals = tuza::net::SignalSet::open({SIGTERM, SIGINT}).value();
//     tuza::go([&] { while (auto n = signals.wait()) drain(); });
//
// The signal handler counts the signal and wakes the goroutine through a pipe: nothing else runs in signal context. No
// signal is lost, and no flood of one signal delays another: different signals are returned by turns, not in the order of
// their arrival. While a SignalSet is open, its signals have no other effect, and they arrive also if the program
// has blocked them, or was started with them blocked: a thread of the runtime receives them. close() or the destructor restores their
// previous disposition, after which another SignalSet may be opened. Signals not received by then are lost. The end of
// tuza::run closes a set that is still open, wherever it lies.
//
// In the child of a fork, before its exec, the signals do what they did before the set was opened.
//
// Thread-safe. At most one SignalSet per process at a time.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <csignal>  // SIGTERM and the others, for programs
#include <initializer_list>
#include <memory>

namespace tuza::net {

class SignalSet {
 public:
  // Errors: EBUSY if another set is open, EINVAL for a signal that cannot be handled; or the system's error, such as EAGAIN
  // if a signal is blocked, and the system refuses the thread for it.
  [[nodiscard]] static Result<SignalSet> open(std::initializer_list<int> signals);
  SignalSet(SignalSet&&) noexcept;
  SignalSet& operator=(SignalSet&&) = delete;
  ~SignalSet();

  // The next signal. Errc::kClosed after close(). Parks.
  [[nodiscard]] Result<int> wait();
  // Like wait(); returns ctx.cause() when the context ends. Parks.
  [[nodiscard]] Result<int> wait(const Context& ctx);
  // For the owner of a signal that has just been returned: waits for 5 ms, and forgets those of the same kind that come meanwhile.
  // timeout(1) and others signal a process, and then its group. Parks.
  void merge(int number);
  void close();

 private:
  [[nodiscard]] Result<int> wait_within(const Context* ctx);
  struct State;
  friend void give_back_signals();
  friend void swallow_after_the_run(SignalSet& signals);
  explicit SignalSet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tuza::net
