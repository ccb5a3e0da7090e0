// Public header.
//
// An asio::io_context with its own thread, which runs Asio's operations while goroutines wait for them.
//
//     tuza::AsioContext asio;
//     asio::steady_timer timer(asio.io(), 50ms);
//     auto waited = timer.async_wait(tuza::use_goroutine);      // framework/asio_bridge.h
//
// The thread is not an M: it performs operations, calls handlers and readies goroutines, which run elsewhere. There
// is only one thread, so handlers never run concurrently, and no strand is needed. Handlers must not wait for
// goroutines. They may do what any external thread may (docs/reference/blocking.md). An exception that escapes a
// handler ends the process.
//
// Lifetime: as Asio requires, sockets, timers and resolvers must be destroyed before their context. Goroutines that
// still wait when the context is destroyed are resumed with Errc::kClosed. If the main goroutine returns first, the
// thread ends then, and pending operations never complete, like everything else that goroutines wait for at that
// point.
//
// While a context lives, the runtime cannot tell whether a handler is about to ready a goroutine, and therefore
// reports no deadlock. Several contexts may exist. io() is as thread-safe as Asio's io_context.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include <tuza/framework/detail/asio_thread.h>

namespace tuza {

class AsioContext {
 public:
  // Call on a goroutine. Throws std::system_error if no thread or no descriptor is available.
  AsioContext() = default;
  // Ends the thread, then destroys pending operations. Call on a goroutine. Parks.
  ~AsioContext() = default;
  AsioContext(const AsioContext&) = delete;
  AsioContext& operator=(const AsioContext&) = delete;

  [[nodiscard]] asio::io_context& io() { return io_; }
  [[nodiscard]] asio::io_context::executor_type get_executor() { return io_.get_executor(); }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  detail::AsioThread thread_{[this] { io_.run(); }, [this] { io_.stop(); }};
};

}  // namespace tuza
