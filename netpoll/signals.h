// Public header, part of <tuza/net.h>.
//
// Waiting for signals: SIGTERM and its like, received by a goroutine.
//
//     auto signals = tuza::net::SignalSet::open({SIGTERM, SIGINT}).value();
//     tuza::go([&] { while (auto n = signals.wait()) drain(); });
//
// The handler writes the number into a pipe, and the goroutine reads it: nothing else runs in signal context.
// While a SignalSet is open, its signals do nothing else; from close() on, or from the destructor, they do what they did
// before, and another one may be opened. Signals that nobody has waited for by then are lost.
//
// Thread-safe. One SignalSet at a time in a process.
#pragma once

#include <tuza/netpoll/tcp.h>
#include <tuza/sched/result.h>

#include <initializer_list>
#include <memory>

namespace tuza::net {

class SignalSet {
 public:
  // Errors: EBUSY if another one is open, EINVAL for a signal that cannot be handled; or what the system says.
  static Result<SignalSet> open(std::initializer_list<int> signals);
  SignalSet(SignalSet&&) noexcept;
  SignalSet& operator=(SignalSet&&) = delete;
  ~SignalSet();

  // The next signal. Errc::kClosed after close(). Parks.
  Result<int> wait();
  // The same; ctx.cause() when the context ends. Parks.
  Result<int> wait(const Context& ctx);
  void close();

 private:
  Result<int> wait_within(const Context* ctx);
  struct State;
  explicit SignalSet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tuza::net
