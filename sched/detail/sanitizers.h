// Tells which sanitizer this code is compiled with, and requires that of Tuza's library.
//
// A goroutine's stack looks wild to AddressSanitizer, and its locks invisible to ThreadSanitizer, unless the runtime is
// compiled with the same one. So every source that includes this refers to a symbol that only such a library defines,
// and the linker's message says what to do. UndefinedBehaviorSanitizer needs nothing of the runtime, and may be mixed.
#pragma once

// GCC has macros, and older releases of Clang have features.
#if defined(__SANITIZE_ADDRESS__)
#define TUZA_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define TUZA_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TUZA_ASAN 1
#elif __has_feature(thread_sanitizer)
#define TUZA_TSAN 1
#endif
#endif

#if defined(TUZA_ASAN)
#define TUZA_SAME_SANITIZER tuza_error_set_TUZA_SANITIZE_to_address_as_in_the_program
#elif defined(TUZA_TSAN)
#define TUZA_SAME_SANITIZER tuza_error_set_TUZA_SANITIZE_to_thread_as_in_the_program
#else
#define TUZA_SAME_SANITIZER tuza_error_Tuza_has_a_sanitizer_and_the_program_has_none
#endif

extern "C" const char TUZA_SAME_SANITIZER;

namespace tuza::rt {

// One per program and sanitizer: the linker would take one of several with the same name, and drop what others need.
#if defined(TUZA_ASAN)
#define TUZA_SANITIZER_USED address_sanitizer_used
#elif defined(TUZA_TSAN)
#define TUZA_SANITIZER_USED thread_sanitizer_used
#else
#define TUZA_SANITIZER_USED no_sanitizer_used
#endif
[[gnu::used]] inline const char* const TUZA_SANITIZER_USED = &TUZA_SAME_SANITIZER;
#undef TUZA_SANITIZER_USED

}  // namespace tuza::rt
