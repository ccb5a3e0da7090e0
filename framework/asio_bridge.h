// Public header.
//
// Asio's operations in goroutines: written as if they blocked, and only the goroutine waits.
//
//     tuza::AsioContext asio;
//     asio::ip::tcp::resolver resolver(asio.io());
//     auto found = resolver.async_resolve("localhost", "7000", tuza::use_goroutine);
//     if (!found) return std::unexpected(found.error());  // "asio: Host not found (authoritative)"
//     asio::ip::tcp::socket socket(asio.io());
//     auto connected = asio::async_connect(socket, *found, tuza::use_goroutine);
//     auto n = socket.async_read_some(asio::buffer(space), tuza::use_goroutine(ctx));
//
// use_goroutine is a completion token, for every operation that takes one, Asio's and those of libraries on
// top of it. What the call returns follows from what the operation completes with:
//
//     (error_code)             Result<void>
//     (error_code, T)          Result<T>
//     (exception_ptr, T)       T, or the exception is thrown
//     (T)                      T
//     more than one value      a std::tuple of them in place of T
//
// The system's errors are std::errc's, as everywhere in Tuza; others are Asio's (error.code() ==
// asio::error::eof).
//
// A Result has no room for what came before the error (an async_read that ends early): wrap the token,
// asio::redirect_error(use_goroutine, code), or asio::as_tuple (Asio 1.24; asio::experimental before).
//
// With a context the operation is cancelled when that ends, by Asio's cancellation slots, and the call
// returns ctx.cause(); a context that has ended keeps it from beginning. The call never returns before the
// operation is over, because that may still use the buffers: one that does not support cancellation
// (async_resolve) is waited for, and one that succeeds all the same has succeeded. Completions without an
// error code throw std::system_error with the cause if the context had ended before. The executor must run
// one handler at a time, as AsioContext does, or a strand: Asio's rule for cancellation.
//
// When the handler is destroyed uncalled, because its io_context is, a Result is Errc::kClosed; without a
// Result, std::future_error with broken_promise is thrown.
//
// Any io_context will do, whatever threads run it. Those other than AsioContext's should have ended what
// goroutines have begun there before tuza::run returns: what they have not ended never completes for the goroutine, and
// no stack of that run is unmapped. Goroutines only, and not inside io_context::run() or its handlers: the process ends,
// because parking there would tear Asio's stack of calls apart.
//
// Parks. Blocks the G; beginning the operation may do what Asio does there (a read that finds data at once).
#pragma once

#include <asio/async_result.hpp>

#include <tuza/framework/asio_context.h>
#include <tuza/framework/detail/asio_operation.h>

#include <utility>

namespace tuza {

class UseGoroutineWithin {
 public:
  explicit UseGoroutineWithin(Context ctx) : ctx_(std::move(ctx)) {}
  [[nodiscard]] const Context& context() const { return ctx_; }

 private:
  Context ctx_;
};

struct UseGoroutine {
  UseGoroutineWithin operator()(const Context& ctx) const { return UseGoroutineWithin(ctx); }
};
inline constexpr UseGoroutine use_goroutine;

}  // namespace tuza

template <class R, class... Values>
class asio::async_result<tuza::UseGoroutine, R(Values...)> {
 public:
  using return_type = typename tuza::detail::AsioOperation<R(Values...)>::Return;

  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, tuza::UseGoroutine, Args&&... args) {
    return tuza::detail::await_asio<R(Values...)>(std::forward<Initiation>(initiation),
                                                  std::forward<Args>(args)...);
  }
};

template <class R, class... Values>
class asio::async_result<tuza::UseGoroutineWithin, R(Values...)> {
 public:
  using return_type = typename tuza::detail::AsioOperation<R(Values...)>::Return;

  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, const tuza::UseGoroutineWithin& token,
                              Args&&... args) {
    return tuza::detail::await_asio_within<R(Values...)>(
        token.context(), std::forward<Initiation>(initiation), std::forward<Args>(args)...);
  }
};
