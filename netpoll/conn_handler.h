// Public header, part of <tuza/net.h>.
//
// The function type that serves a connection: the handler of serve() and listen_and_serve().
//
//     tuza::net::ConnHandler echo = [](tuza::net::Conn& conn) { ... };
//
// Called on a goroutine per connection, for many connections at once: a handler must be thread-safe. Any function
// object that can be called as const with (Conn&) becomes a ConnHandler, which is movable and not copyable. One made of a null
// pointer is empty, and serves nothing: serve() throws std::invalid_argument.
//
// A handler may return a Result, so that it can be written with TUZA_TRY. Its error is a line in the log (sched/log.h), once a
// second at most. An error that says that a peer has gone (closed, reset, broken pipe, end of the stream) is not logged,
// whichever peer it was.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/sched/detail/lost_result.h>
#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/result.h>

#include <concepts>
#include <type_traits>
#include <utility>

namespace tuza::net {

namespace detail {

void log_failed_handler(Conn& conn, const Error& error);

template <class F>
struct LoggingHandler {
  void operator()(Conn& conn) const {
    if (const auto result = function(conn); !result) log_failed_handler(conn, result.error());
  }
  F function;
};

template <class F>
constexpr bool returns_result() {
  if constexpr (tuza::detail::returns_expected<const F&, Conn&>()) {
    using R = std::remove_cvref_t<std::invoke_result_t<const F&, Conn&>>;
    static_assert(
        std::same_as<typename R::error_type, Error>,
        "a handler of connections that returns a std::expected returns a tuza::Result: its error is logged");
    return std::same_as<typename R::error_type, Error>;
  } else {
    return false;
  }
}

}  // namespace detail

class ConnHandler : public MoveOnlyFunction<void(Conn&) const> {
  using Base = MoveOnlyFunction<void(Conn&) const>;

 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, ConnHandler>)
  ConnHandler(F&& function) {  // NOLINT: converts, and says what is wrong with a function that does not fit
    using Function = std::decay_t<F>;
    constexpr bool kServes = std::is_invocable_v<const Function&, Conn&>;
    constexpr bool kOnlyMutable = !kServes && std::is_invocable_v<Function&, Conn&>;
    constexpr bool kMade = std::constructible_from<Function, F>;
    static_assert(
        !kOnlyMutable,
        "this handler serves many connections at once and is called as const: a mutable lambda, or an "
        "operator() that is not const, cannot be one");
    static_assert(kServes || kOnlyMutable, "this handler must be callable with (tuza::net::Conn&)");
    static_assert(kMade, "this handler cannot be copied: pass it with std::move()");
    if constexpr (std::is_pointer_v<std::remove_cvref_t<F>>) {
      if (function == nullptr) return;
    }
    if constexpr (kServes && kMade && detail::returns_result<Function>()) {
      Base::operator=(Base(detail::LoggingHandler<Function>{std::forward<F>(function)}));
    } else if constexpr (kServes && kMade) {
      Base::operator=(Base(std::forward<F>(function)));
    }
  }
};

}  // namespace tuza::net
