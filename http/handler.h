// Public header, part of <tuza/http.h>.
//
// The function type that answers requests.
#pragma once

#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/sched/detail/lost_result.h>
#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/result.h>

#include <concepts>
#include <cstddef>
#include <expected>
#include <type_traits>
#include <utility>

namespace tuza::http {

namespace detail {

using HandlerFunction = MoveOnlyFunction<void(Request&, ResponseWriter&) const>;

template <class F>
concept Answers = std::is_invocable_v<const F&, Request&, ResponseWriter&>;

// An error would be taken for an answer, and a status be lost.
template <class F>
constexpr void refuse_foreign_result() {
  constexpr bool kExpected = tuza::detail::returns_expected<const F&, Request&, ResponseWriter&>();
  static_assert(!kExpected, "an http::Handler that returns a std::expected returns a tuza::Result");
  static_assert(kExpected || std::is_void_v<std::invoke_result_t<const F&, Request&, ResponseWriter&>>,
                "an http::Handler returns nothing or a tuza::Result: a status is set with res.status()");
}

// Throws the error that the function returns: dropped, it would be a 200 for what has failed.
template <class F>
struct ThrowingResult {
  void operator()(Request& req, ResponseWriter& res) const {
    if (auto result = function(req, res); !result)
      throw std::bad_expected_access<Error>(std::move(result).error());
  }
  F function;
};

template <class F>
concept Fails = Answers<F> && requires(std::invoke_result_t<const F&, Request&, ResponseWriter&> result) {
  { std::move(result).error() } -> std::same_as<Error&&>;
};

// A type whose conversion to a Handler is somebody's intent, and so deserves an explanation if it fails.
template <class F>
concept IsFunction =
    std::is_function_v<std::remove_pointer_t<F>> || std::is_member_function_pointer_v<F> ||
    requires { &F::operator(); } || std::invocable<F&> || std::is_invocable_v<F&, Request&, ResponseWriter&>;

}  // namespace detail

// Called on the connection's goroutine, for many connections at once: a handler must be thread-safe. It may
// block, park, stream and throw. An exception is logged, becomes a 500 if the response has not begun, and
// closes the connection; the close is a reset if the response has begun and its end is marked by the end of
// the connection (possible in HTTP/1.0). The 500 keeps header fields as ResponseWriter::error() does. goexit() also closes the connection, without an answer.
//
// Request and ResponseWriter become invalid when the handler returns: goroutines started by the handler must
// not use them later. AddressSanitizer names those that do.
//
// Responses to pipelined requests are sent together: when the last received request has been answered, when
// the responses exceed 64 KiB, or when the next handler parks. Only behind a handler that computes does a response wait;
// ResponseWriter::flush() sends at once.
//
// A handler may return a Result: an error is logged and answered as an exception is, except that of a body that cannot be
// read, which the server answers with its status.
//
// Any function object that can be called as const with (Request&, ResponseWriter&) becomes a Handler. A Handler
// is movable and not copyable; without a function, or of a null pointer, it is empty, and compares equal to nullptr.
class Handler : public detail::HandlerFunction {
 public:
  Handler() = default;
  Handler(std::nullptr_t) noexcept {}  // NOLINT: converts, as for every function type
  template <class F>
    requires(!std::same_as<std::decay_t<F>, Handler> && detail::Answers<std::decay_t<F>> &&
             !detail::Fails<std::decay_t<F>> && std::constructible_from<std::decay_t<F>, F>)
  Handler(F&& function) : detail::HandlerFunction(std::forward<F>(function)) {  // NOLINT: converts
    detail::refuse_foreign_result<std::decay_t<F>>();
  }
  template <class F>
    requires(!std::same_as<std::decay_t<F>, Handler> && detail::Fails<std::decay_t<F>> &&
             std::constructible_from<std::decay_t<F>, F>)
  Handler(F&& function) {  // NOLINT: converts
    using Function = std::decay_t<F>;
    if constexpr (std::is_pointer_v<std::remove_cvref_t<F>>) {
      if (function == nullptr) return;
    }
    detail::HandlerFunction::operator=(
        detail::HandlerFunction(detail::ThrowingResult<Function>{std::forward<F>(function)}));
  }
  template <class F>
    requires(!std::same_as<std::decay_t<F>, Handler> && detail::IsFunction<std::decay_t<F>> &&
             !(detail::Answers<std::decay_t<F>> && std::constructible_from<std::decay_t<F>, F>))
  Handler(F&&) {  // NOLINT: says what is wrong with the function
    using Function = std::decay_t<F>;
    constexpr bool kOnlyMutable =
        !detail::Answers<Function> && std::is_invocable_v<Function&, Request&, ResponseWriter&>;
    static_assert(
        !kOnlyMutable,
        "an http::Handler answers many requests at once and is called as const: a mutable lambda, or an "
        "operator() that is not const, cannot be one");
    constexpr bool kMember = std::is_member_function_pointer_v<Function>;
    static_assert(!kMember,
                  "a member function is no http::Handler without its object: pass "
                  "std::bind_front(&Class::function, &object)");
    static_assert(kMember || kOnlyMutable || detail::Answers<Function>,
                  "an http::Handler is called with (http::Request&, http::ResponseWriter&)");
    static_assert(std::constructible_from<Function, F>,
                  "this handler cannot be copied: pass it with std::move()");
  }
};

}  // namespace tuza::http
