// Tracks the locks of libc that the calling M holds, for a check: TUZA_DEBUG=heldmutex.
//
// A goroutine that parks while it holds a std::mutex may resume on another thread, which does not own the
// mutex. Meanwhile every waiter for the mutex blocks its thread. While the check is on, functions of ours stand
// in front of libc's pthread_mutex_* and pthread_rwlock_*. They record each lock with the place where it was
// locked, and park() refuses (rt/report/mutex_report.h).
//
// Debug and chaos builds define functions of these names, and the check is always on. In other builds
// check_held_mutexes() redirects the calls of the loaded object files (arch/lock_slots.h). Until then a lock costs
// what it costs without Tuza, and a park costs a few tests of a flag. The alternatives:
//
// - Functions of these names that pass calls on while a flag is off, in every build. Measured with GCC 12, glibc
//   2.36 and an uncontended std::mutex, the detour takes 0.1 to 0.8 ns of 12.5 ns for a lock and an unlock. But it
//   is in every program for its whole life, and a static program would have each function twice.
// - To ask glibc at each park. A mutex knows its owner, but a thread does not know its mutexes: only robust ones
//   are in a list.
//
// A mutex that pthread_cond_wait releases temporarily counts as held: the thread waits inside that call.
//
// Thread safety: each thread sees its own locks. Recording neither allocates nor locks, and does not call the
// unwinder. The first lock of a thread maps memory for its records.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

struct HeldLock {
  enum class Kind : std::uint8_t { kMutex, kRecursiveMutex, kReadLock, kWriteLock };
  static constexpr std::size_t kPcsMax = 16;

  const void* lock;
  std::uint64_t goroutine;  // the goroutine that locked it; 0: the scheduler
  Kind kind;
  std::uint8_t pcs_known;
  std::array<std::uintptr_t, kPcsMax> pcs_room;

  [[nodiscard]] std::span<const std::uintptr_t> pcs() const { return std::span(pcs_room).first(pcs_known); }
};

// Whether the check is on. Set before the Ms exist, and never cleared, so that relaxed reads are enough.
extern std::atomic<bool> g_checks_held_mutexes;
inline bool checks_held_mutexes() { return g_checks_held_mutexes.load(std::memory_order_relaxed); }

// Switches the check on. Locks taken before do not count. False: it stays off, because the program is linked
// statically, the loader's slots cannot be written, or a sanitizer has functions of its own in front of libc's.
[[nodiscard]] bool check_held_mutexes();

// Not inlined: the functions read thread-locals, and the goroutine may have changed its thread since the last
// call.

// The number of locks held. A recursive mutex counts as often as it is locked.
[[gnu::noinline]] int held_mutexes();

// The first locks in locking order, up to 8. Valid until the thread locks or unlocks one.
[[gnu::noinline]] std::span<const HeldLock> held_locks();

// Whether all unlocks since the first of these locks must have been seen. If not, because a library was opened
// meanwhile or the loader has restored a slot, the thread's locks are forgotten. Call it before acting on them.
[[nodiscard, gnu::noinline]] bool held_locks_are_certain();

// The thread is no longer an M.
void forget_held_locks();

}  // namespace tuza::rt
