// Calls a user's function and catches its exception for another goroutine: the owner of a future, of a
// group.
//
// goexit() is not an exception: it passes through, as it must (catch (...) without a rethrow would end the
// process).
#pragma once

#include <exception>
#include <utility>

namespace tuza::rt {

// Whether goexit() is unwinding the goroutine; std::uncaught_exceptions() does not count goexit().
[[nodiscard]] bool in_goexit();

// The exception thrown by `function()`; null if it returned.
template <class F>
std::exception_ptr catch_exception(F&& function) {
  try {
    std::forward<F>(function)();
    return nullptr;
  } catch (...) {
    std::exception_ptr thrown = std::current_exception();
    if (thrown == nullptr) throw;  // goexit(): not a C++ exception
    return thrown;
  }
}

}  // namespace tuza::rt
