// Public header.
//
// An asio::io_context with a thread of its own: where Asio's operations run while goroutines wait for them.
//
//     tuza::AsioContext asio;
//     asio::steady_timer timer(asio.io(), 50ms);
//     auto waited = timer.async_wait(tuza::use_goroutine);      // framework/asio_bridge.h
//
// The thread is no M: it performs operations, calls handlers and readies goroutines, which run elsewhere. One
// thread, so handlers never run at the same time, and no strand is needed. Handlers must not wait for
// goroutines; what they may do is what any external thread may (HACKING.md, what blocks what). An exception
// that leaves one ends the process.
//
// Lifetime: as Asio wants it, sockets, timers and resolvers go before their context. Goroutines that still
// wait when it is destroyed are let go with Errc::kClosed. If the main goroutine returns first, the thread
// ends then; operations that are pending never complete, like everything that goroutines wait for there.
//
// While a context lives the runtime cannot tell whether a handler is about to ready somebody, and reports no
// deadlock. Several contexts may exist. io() is as thread-safe as Asio's io_context.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include <tuza/sched/external.h>

#include <memory>
#include <thread>

namespace tuza {

namespace rt {
class EndHook;
}

class AsioContext {
 public:
  // On a goroutine. Throws std::system_error if there is no thread to be had, or no descriptor.
  AsioContext();
  // Ends the thread, then what is pending. On a goroutine. Parks.
  ~AsioContext();
  AsioContext(const AsioContext&) = delete;
  AsioContext& operator=(const AsioContext&) = delete;

  [[nodiscard]] asio::io_context& io() { return io_; }
  [[nodiscard]] asio::io_context::executor_type get_executor() { return io_.get_executor(); }

 private:
  void begin();
  void end();

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
  const ExternalWaker promise_;
  const std::unique_ptr<rt::EndHook> running_;  // the thread, from begin() to end()
};

}  // namespace tuza
