// Public header.
//
// Operations of Boost.Asio, and of what is built on it (Beast, MySQL, Redis), in goroutines: framework/asio_bridge.h for
// boost::asio. All that is said there holds here; a program, and a file, may use both.
//
//     tuza::BoostAsioContext boost;
//     boost::beast::tcp_stream stream(boost.io());
//     auto connected = stream.async_connect(endpoint, tuza::use_goroutine);
//     if (!connected) return std::unexpected(connected.error());
//     auto sent = boost::beast::http::async_write(stream, request, tuza::use_goroutine(ctx));
//
// Errors are std::error_codes: compare with boost::system::error_code(boost::asio::error::eof).
//
// Needs Boost 1.81 or newer, of which Tuza itself uses nothing: only its headers, and only here.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detail/thread_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <tuza/framework/boost_asio_context.h>
#include <tuza/framework/detail/asio_operation.h>
#include <tuza/framework/use_goroutine.h>

#include <system_error>
#include <utility>

namespace tuza::detail {

struct BoostAsio {
  using ErrorCode = boost::system::error_code;
  using CancellationSlot = boost::asio::cancellation_slot;
  using CancellationSignal = boost::asio::cancellation_signal;
  static constexpr auto kCancelAll = boost::asio::cancellation_type::all;

  static bool inside_handler() {
    return boost::asio::detail::thread_context::top_of_thread_call_stack() != nullptr;
  }
  // Boost's category of the system becomes the standard one.
  static std::error_code standard_code(const boost::system::error_code& code) { return code; }
  template <class Executor, class Function>
  static void post(const Executor& executor, Function function) {
    boost::asio::post(executor, std::move(function));
  }
};

}  // namespace tuza::detail

template <class R, class... Values>
class boost::asio::async_result<tuza::UseGoroutine, R(Values...)>
    : public tuza::detail::GoroutineResult<tuza::detail::BoostAsio, R(Values...)> {};

template <class R, class... Values>
class boost::asio::async_result<tuza::UseGoroutineWithin, R(Values...)>
    : public tuza::detail::GoroutineResult<tuza::detail::BoostAsio, R(Values...)> {};

template <class Executor, class R, class... Values>
class boost::asio::async_result<tuza::UseGoroutineOn<Executor>, R(Values...)>
    : public tuza::detail::GoroutineResult<tuza::detail::BoostAsio, R(Values...)> {};
