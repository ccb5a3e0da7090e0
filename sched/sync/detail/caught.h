// Calling a user's function whose exception somebody else shall get: the owner of a future, of a group.
//
// Not for what is no exception: goexit() passes through, as it must (catch (...) without a rethrow would end
// the process).
#pragma once

#include <exception>
#include <utility>

namespace tuza::rt {

// Whether goexit() unwinds the goroutine: std::uncaught_exceptions() does not count it.
[[nodiscard]] bool in_goexit();

// What `function()` threw; null if it returned.
template <class F>
std::exception_ptr catch_exception(F&& function) {
  try {
    std::forward<F>(function)();
    return nullptr;
  } catch (...) {
    std::exception_ptr thrown = std::current_exception();
    if (thrown == nullptr) throw;  // goexit(): no exception of C++
    return thrown;
  }
}

}  // namespace tuza::rt
