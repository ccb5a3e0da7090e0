// System calls that return -errno instead of setting errno.
//
// errno is a thread-local: a goroutine that parks between a call and the read of errno may read the errno of
// another thread. Calling the kernel directly avoids that problem, and libc's cancellation checks as well.
// Calls that only libc can make (getaddrinfo, pthread_*) report errors by value anyway.
//
// Thread safety: thread-safe. None of these calls parks the goroutine; each may block the M.
#pragma once

#include <tuza/sched/detail/sanitizers.h>

#include <cstdint>
#include <type_traits>
#if defined(TUZA_TSAN)
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tuza::sys {

#if defined(__x86_64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory"
#if defined(__ARM_FEATURE_SVE)
                 // The kernel keeps the low 128 bits of each vector register, and no predicate.
                 ,
                 "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
                 "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
                 "v27", "v28", "v29", "v30", "v31", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8",
                 "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#endif
  );
  return x0;
}
#endif

// An argument of a system call: integers and pointers are both passed as one word.
template <class T>
long word(T value) {
  if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return static_cast<long>(reinterpret_cast<std::intptr_t>(value));
  } else {
    return static_cast<long>(value);
  }
}

// call(number, args...) for pointers and integers of any type.
template <class... Args>
long invoke(long number, Args... args) {
#if defined(TUZA_TSAN)
  // TSan delays a signal until the thread enters libc, which the thread may not do before it is woken. The
  // thread therefore enters libc before it waits, and again after a signal has interrupted it.
  sigset_t pending;
  if (number == SYS_futex) ::sigpending(&pending);
#endif
  const long result = call(number, word(args)...);
#if defined(TUZA_TSAN)
  if (result == -4 /* EINTR */) ::usleep(0);
#endif
  return result;
}

}  // namespace tuza::sys
