// Public header, part of <tuza/tuza.h>.
//
// TUZA_TRY(): goes on with a value, or returns the error from the enclosing function.
//
//     tuza::Result<std::string> first_line(std::string_view address) {
//       TUZA_TRY(auto conn, tuza::net::dial("tcp", address));    // return std::unexpected(error) if it failed
//       TUZA_TRY(conn.write_all("hello\n"));                     // a Result<void>, or a value that nobody needs
//       ...
//     }
//
// The enclosing function returns a Result<U>, of any U; a lambda says so: []() -> tuza::Result<void> { ... }.
// The last argument is an expression of type Result<T>, which is evaluated once. The arguments before it are a
// declaration, or a variable, that the value is moved into: `TUZA_TRY(auto [key, value], next());`. With an
// lvalue the value is copied. To keep a reference to the value, declare `auto&&`.
//
// The form with a declaration consists of several statements: it cannot be the body of an `if` without braces.
// An expression with a comma outside of (), such as f<int, int>(), needs parentheses around it; a declaration
// does not, up to three commas.
//
// This is the only macro of the public headers: no function can return from its caller.
#pragma once

#include <tuza/sched/result.h>

#include <expected>
#include <utility>

#define TUZA_TRY(...)                                                                             \
  TUZA_TRY_NAME_(__VA_ARGS__, TUZA_TRY_5_, TUZA_TRY_4_, TUZA_TRY_3_, TUZA_TRY_2_, TUZA_TRY_1_, _) \
  (__COUNTER__, __VA_ARGS__)

// Details: the last argument is separated from those before it, and a number makes the names unique, so that
// uses on one line, or within another's expression, do not shadow each other.
#define TUZA_TRY_NAME_(a1, a2, a3, a4, a5, name, ...) name
#define TUZA_TRY_1_(n, expr) TUZA_TRY_IGNORE_(n, expr)
#define TUZA_TRY_2_(n, d1, expr) TUZA_TRY_DECLARE_(n, expr, d1)
#define TUZA_TRY_3_(n, d1, d2, expr) TUZA_TRY_DECLARE_(n, expr, d1, d2)
#define TUZA_TRY_4_(n, d1, d2, d3, expr) TUZA_TRY_DECLARE_(n, expr, d1, d2, d3)
#define TUZA_TRY_5_(n, d1, d2, d3, d4, expr) TUZA_TRY_DECLARE_(n, expr, d1, d2, d3, d4)
#define TUZA_TRY_IGNORE_(n, expr) \
  do {                            \
    TUZA_TRY_RETURN_(n, expr)     \
  } while (false)
#define TUZA_TRY_DECLARE_(n, expr, ...) \
  TUZA_TRY_RETURN_(n, expr)             \
  __VA_ARGS__ = *std::forward<decltype(tuza_tried_##n)>(tuza_tried_##n)
#define TUZA_TRY_RETURN_(n, expr)                                                           \
  auto&& tuza_tried_##n = (expr);                                                           \
  if (!tuza_tried_##n.has_value()) {                                                        \
    return std::unexpected(std::forward<decltype(tuza_tried_##n)>(tuza_tried_##n).error()); \
  }
