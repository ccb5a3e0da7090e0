// Public header, part of <tuza/net.h>.
//
// Waiting for signals: a goroutine receives SIGTERM and similar signals.
//
//     auto signals = tuza::net::SignalSet::open({SIGTERM, SIGINT}).value();
//     tuza::go([&] { while (auto n = signals.wait()) drain(); });
//
// The signal handler writes the signal number into a pipe, and the goroutine reads it: nothing else runs in
// signal context. While a SignalSet is open, its signals have no other effect. close() or the destructor
// restores their previous disposition, after which another SignalSet may be opened. Signals not received by
// then are lost.
//
// Thread-safe. At most one SignalSet per process at a time.
#pragma once

#include <tuza/netpoll/tcp.h>
#include <tuza/sched/result.h>

#include <csignal>  // SIGTERM and the others, for programs
#include <initializer_list>
#include <memory>

namespace tuza::net {

class SignalSet {
 public:
  // Errors: EBUSY if another set is open, EINVAL for a signal that cannot be handled; or the system's error.
  [[nodiscard]] static Result<SignalSet> open(std::initializer_list<int> signals);
  SignalSet(SignalSet&&) noexcept;
  SignalSet& operator=(SignalSet&&) = delete;
  ~SignalSet();

  // The next signal. Errc::kClosed after close(). Parks.
  [[nodiscard]] Result<int> wait();
  // Like wait(); returns ctx.cause() when the context ends. Parks.
  [[nodiscard]] Result<int> wait(const Context& ctx);
  void close();

 private:
  [[nodiscard]] Result<int> wait_within(const Context* ctx);
  struct State;
  explicit SignalSet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tuza::net
