// Public header.
//
// Asio's operations in goroutines: they are called as if they blocked, and only the calling goroutine waits.
//
//     tuza::AsioContext asio;
//     asio::ip::tcp::resolver resolver(asio.io());
//     auto found = resolver.async_resolve("localhost", "7000", tuza::use_goroutine);
//     if (!found) return std::unexpected(found.error());  // "asio: Host not found (authoritative)"
//     asio::ip::tcp::socket socket(asio.io());
//     auto connected = asio::async_connect(socket, *found, tuza::use_goroutine);
//     auto n = socket.async_read_some(asio::buffer(space), tuza::use_goroutine(ctx));
//
// use_goroutine is a completion token. It works with every operation that takes one, both Asio's and those of
// libraries built on Asio. The completion signature determines the return type of the call:
//
//     (error_code)             Result<void>
//     (error_code, T)          Result<T>
//     (exception_ptr, T)       T, or the exception is thrown
//     (T)                      T
//     more than one value      a std::tuple of them in place of T
//
// Errors of the system compare equal to std::errc values, as everywhere in Tuza; other errors are Asio's
// (error.code() == asio::error::eof).
//
// A Result cannot hold what came before an error (an async_read that ends early). Wrap the token instead:
// asio::redirect_error(use_goroutine, code), or asio::as_tuple (Asio 1.24; asio::experimental before).
//
// With a context, the operation is cancelled through Asio's cancellation slots when the context ends, and the call
// returns ctx.cause(). If the context has already ended, the operation is not started. The call never returns
// before the operation is over, because the operation may still use the buffers: an operation that does not support
// cancellation (async_resolve) is waited for, and an operation that succeeds in spite of the cancellation returns
// its result. If the context has ended before the call and the completion has no error code, the call throws
// std::system_error with the cause. The executor must run one handler at a time, as AsioContext or a strand does;
// Asio requires this for cancellation.
//
// If the handler is destroyed without being called, because its io_context is destroyed, a Result is Errc::kClosed.
// A call that does not return a Result throws std::future_error with broken_promise.
//
// Any io_context will do, whichever threads run it. An io_context other than AsioContext's must complete all
// operations started by goroutines before tuza::run returns. Otherwise such an operation never completes for its
// goroutine, and no stack of that run is unmapped. For goroutines only, and not inside io_context::run() or its
// handlers: the process is terminated, because parking there would tear Asio's call stack apart.
//
// Two goroutines must not begin operations on one socket at the same time, not even a read and a write: Asio's objects
// are not thread-safe, and an operation is begun on the caller's thread, which no strand of the socket can change. Once
// begun, both may be pending. What several goroutines use at will is net::Conn; or each of them begins its operations on
// one executor, that of the object, which also makes them end with a context where the library does not say where an
// operation runs:
//
//     auto done = connection.async_exec(request, response, tuza::use_goroutine.on(connection.get_executor(), ctx));
//
//
// Boost's Asio: framework/boost_asio_bridge.h. A program, and a file, may use both.
//
// Parks. Blocks the G. Starting the operation may do whatever Asio does at that point (a read that finds data at
// once).
#pragma once

#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/detail/thread_context.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>

#include <tuza/framework/asio_context.h>
#include <tuza/framework/detail/asio_operation.h>
#include <tuza/framework/use_goroutine.h>

#include <system_error>
#include <utility>

namespace tuza::detail {

struct StandaloneAsio {
  using ErrorCode = std::error_code;
  using CancellationSlot = asio::cancellation_slot;
  using CancellationSignal = asio::cancellation_signal;
  static constexpr auto kCancelAll = asio::cancellation_type::all;

  static bool inside_handler() { return asio::detail::thread_context::top_of_thread_call_stack() != nullptr; }
  // Asio has its own category for errors of the system. Tuza uses the standard category, so that
  // error.is(std::errc::...) gives the same answer for errors from any source.
  static std::error_code standard_code(const std::error_code& code) {
    if (code.category() != asio::error::get_system_category()) return code;
    return {code.value(), std::system_category()};
  }
  template <class Executor, class Function>
  static void post(const Executor& executor, Function function) {
    asio::post(executor, std::move(function));
  }
};

}  // namespace tuza::detail

template <class R, class... Values>
class asio::async_result<tuza::UseGoroutine, R(Values...)>
    : public tuza::detail::GoroutineResult<tuza::detail::StandaloneAsio, R(Values...)> {};

template <class R, class... Values>
class asio::async_result<tuza::UseGoroutineWithin, R(Values...)>
    : public tuza::detail::GoroutineResult<tuza::detail::StandaloneAsio, R(Values...)> {};

template <class Executor, class R, class... Values>
class asio::async_result<tuza::UseGoroutineOn<Executor>, R(Values...)>
    : public tuza::detail::GoroutineResult<tuza::detail::StandaloneAsio, R(Values...)> {};
