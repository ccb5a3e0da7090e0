// Which locks of libc the calling thread holds: a check of debug and chaos builds (TUZA_CHECK_MUTEXES).
//
// A goroutine that parks with a std::mutex in its hands may go on on another thread, which does not own it,
// and whoever waits for it meanwhile blocks a thread. These builds put functions of their own before libc's
// pthread_mutex_* and pthread_rwlock_*, which note each lock with the place where it was locked, and park()
// refuses (rt/report/mutex_report.h). Other builds have none of this.
//
// A mutex that pthread_cond_wait gives back for a while counts as held: the thread waits in there.
//
// Thread safety: each thread sees its own locks. Nothing allocates, locks or calls the unwinder.
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
  std::uint64_t goroutine;  // that locked it; 0: none, the scheduler or a thread that is no M
  Kind kind;
  std::uint8_t pcs_known;  // 0 for a thread that is no M
  std::array<std::uintptr_t, kPcsMax> pcs_room;

  [[nodiscard]] std::span<const std::uintptr_t> pcs() const { return std::span(pcs_room).first(pcs_known); }
};

#if defined(TUZA_CHECK_MUTEXES)
inline constexpr bool kChecksMutexes = true;
// Not inlined: they read thread-locals, and the thread may have changed since the last call.

// How many there are. A recursive mutex counts as often as it is locked.
[[gnu::noinline]] int held_mutexes();

// The first of them in the order of locking, up to 8. Valid until the thread locks or unlocks one.
[[gnu::noinline]] std::span<const HeldLock> held_locks();
#else
inline constexpr bool kChecksMutexes = false;
#endif

}  // namespace tuza::rt
