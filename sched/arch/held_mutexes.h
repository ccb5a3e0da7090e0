// How many mutexes of libc the calling thread holds: a check of debug and chaos builds (TUZA_CHECK_MUTEXES).
//
// A goroutine that parks with a std::mutex in its hands may go on on another thread, which does not own it,
// and whoever waits for it meanwhile holds up a P. These builds put functions of their own before libc's
// pthread_mutex_* and pthread_rwlock_*, which count, and park() refuses. In other builds nothing is counted.
#pragma once

namespace tuza::rt {

#if defined(TUZA_CHECK_MUTEXES)
inline constexpr bool kChecksMutexes = true;
// Not inlined: it reads a thread-local, and the thread may have changed since the last call.
[[gnu::noinline]] int held_mutexes();
#else
inline constexpr bool kChecksMutexes = false;
inline int held_mutexes() { return 0; }
#endif

}  // namespace tuza::rt
