// One clear error, before all others, for a compiler or a -std= that Tuza cannot use. A public header includes it before
// anything else, unless what it includes first does. The test `language` tries them all.
#pragma once

#include <version>

// Clang before 19 has libstdc++'s <expected> only if __cpp_concepts is set by hand, as .clangd does.
#if !defined(__cpp_lib_expected)
#error "Tuza needs C++23 with std::expected: GCC 12 or Clang 19, or newer, with -std=c++23"
#endif
