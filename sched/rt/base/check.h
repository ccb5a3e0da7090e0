// Bugs of ours, and misuse that must never pass: checked in every build, reported, fatal.
//
// TUZA_CHECK(condition) for invariants of the runtime; fatal(...) for misuse by the program (unlock of
// an unlocked mutex, go() outside run()). Both print one line, the state of the scheduler, the back trace
// of the caller, and abort. Errors of the outside world never come here: they are Results.
#pragma once

#include <string_view>

namespace tuza::rt {

// Before anything is said that ends the process: the first to come here returns. Who comes later waits for
// the end, for two reports at once could not be read. Coming again, because the report itself has failed,
// aborts.
void begin_last_report();

// Prints "tuza: fatal: <what>" with the current goroutine and its back trace, and aborts.
[[noreturn]] void fatal(std::string_view what);
// `details` prints what the report has to say besides, after the back trace.
[[noreturn]] void fatal(std::string_view what, void (*details)());

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace tuza::rt

#define TUZA_CHECK(condition) \
  (__builtin_expect(!(condition), 0) ? ::tuza::rt::check_failed(#condition, __FILE__, __LINE__) : void())
