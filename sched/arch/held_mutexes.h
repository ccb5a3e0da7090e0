// Tracks the locks of libc that the calling thread holds: a check in debug and chaos builds
// (TUZA_CHECK_MUTEXES).
//
// A goroutine that parks while it holds a std::mutex may resume on another thread, which does not own the
// mutex. Meanwhile every waiter for the mutex blocks its thread. These builds interpose functions in front of
// libc's pthread_mutex_* and pthread_rwlock_*, which record each lock with the place where it was locked, and
// park() refuses (rt/report/mutex_report.h). Other builds have none of this.
//
// A mutex that pthread_cond_wait releases temporarily counts as held: the thread waits inside that call.
//
// Thread safety: each thread sees its own locks. Nothing here allocates, locks or calls the unwinder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

struct HeldLock {
  enum class Kind : std::uint8_t { kMutex, kRecursiveMutex, kReadLock, kWriteLock };
  static constexpr std::size_t kPcsMax = 16;

  const void* lock;
  std::uint64_t goroutine;  // the goroutine that locked it; 0: the scheduler, or a thread that is not an M
  Kind kind;
  std::uint8_t pcs_known;  // 0 for a thread that is not an M
  std::array<std::uintptr_t, kPcsMax> pcs_room;

  [[nodiscard]] std::span<const std::uintptr_t> pcs() const { return std::span(pcs_room).first(pcs_known); }
};

#if defined(TUZA_CHECK_MUTEXES)
inline constexpr bool kChecksMutexes = true;
// Not inlined: the functions read thread-locals, and the goroutine may have changed its thread since the last
// call.

// The number of locks held. A recursive mutex counts as often as it is locked.
[[gnu::noinline]] int held_mutexes();

// The first locks in locking order, up to 8. Valid until the thread locks or unlocks one.
[[gnu::noinline]] std::span<const HeldLock> held_locks();
#else
inline constexpr bool kChecksMutexes = false;
#endif

}  // namespace tuza::rt
