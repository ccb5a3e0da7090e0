// Fatal errors: bugs of Tuza, and misuse that must not be tolerated. Checked in every build.
//
// TUZA_CHECK(condition) is for invariants of the runtime, fatal(...) for misuse by the program (unlocking a
// mutex that is not locked, go() outside run()). Both print one line, the back trace of the caller and the
// state of the scheduler, and abort. Errors of the environment are Results, except while a runtime starts:
// run() cannot do without its first threads and memory.
#pragma once

#include <string_view>

namespace tuza::rt {

// Call before printing a report that ends the process. Returns to the first caller only. Other threads wait here
// until the process ends, because two reports at once would be unreadable. A second call by the reporting
// thread means that the report itself has failed, and aborts.
void begin_last_report();

// Prints "tuza: fatal: <what>" with the current goroutine and its back trace, and aborts.
[[noreturn]] void fatal(std::string_view what);
// `details` prints more text after the back trace.
[[noreturn]] void fatal(std::string_view what, void (*details)());

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace tuza::rt

#define TUZA_CHECK(condition) \
  (__builtin_expect(!(condition), 0) ? ::tuza::rt::check_failed(#condition, __FILE__, __LINE__) : void())
