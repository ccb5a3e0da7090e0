// Names of functions as dumps show them: what the standard library and the runtime add is left out, so that the program's own
// frames are found at once.
//
// The names are those of the C++ demangler, perhaps cut off. The rule is Go's: frames of the runtime are hidden, except
// functions that programs call themselves.
//
// Thread-safe. Allocates.
#pragma once

#include <string>
#include <string_view>

namespace tuza::rt {

// "std::string" for what it stands for, "tuza::Result<T>", no default template arguments; beyond 160 characters "(...)" and
// "<...>" for what is in brackets.
[[nodiscard]] std::string short_name(std::string_view demangled);

// Whether the function says nothing about the program: the runtime's own (namespace rt and others), and the standard
// library's ways to call a function object.
[[nodiscard]] bool is_plumbing(std::string_view demangled);
// The same for the file of a function without a name: whether it is the C++ runtime.
[[nodiscard]] bool is_cxx_runtime(std::string_view file);

// The type of the function object that a goroutine runs, "shop::serve()::{lambda()#1}", from the function that calls it. An
// optimising compiler inlines the body there, since nothing else calls it; the goroutine's function then has no other frame.
// Empty for other functions, for the calls of pointers, of plumbing, and in a name that was cut off.
[[nodiscard]] std::string_view goroutine_function(std::string_view demangled);

}  // namespace tuza::rt
