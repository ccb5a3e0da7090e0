// Calls whose result nobody gets refuse functions that return a Result: its error would be lost without a word.
//
// For a function that takes a MoveOnlyFunction, an overload beside it:
//
//     template <class F>
//       requires(detail::kReturnsResult<F>)
//     void call_later(F&&) {
//       detail::refuse_lost_result<F>();
//     }
#pragma once

#include <tuza/sched/result.h>

#include <expected>
#include <type_traits>

namespace tuza::detail {

template <class T>
inline constexpr bool kIsExpected = false;
template <class T, class E>
inline constexpr bool kIsExpected<std::expected<T, E>> = true;

template <class F, class... Args>
constexpr bool returns_expected() {
  if constexpr (std::is_invocable_v<F, Args...>) {
    return kIsExpected<std::remove_cvref_t<std::invoke_result_t<F, Args...>>>;
  } else {
    return false;
  }
}
// Whether a copy of a function that is called with these arguments returns a Result, or another std::expected.
template <class F, class... Args>
inline constexpr bool kReturnsResult = returns_expected<std::decay_t<F>&, Args...>();

template <class F>
constexpr void refuse_lost_result() {
  static_assert(!sizeof(F*), "the error that this function returns would be lost: handle it in the function");
}

}  // namespace tuza::detail
