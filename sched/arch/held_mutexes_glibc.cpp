#include <tuza/sched/arch/held_mutexes.h>

#include <dlfcn.h>
#include <pthread.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/lock_slots.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/m.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

// Null in a static program, where it would not work. There is no need for it then, and no warning of the linker.
#pragma weak dlsym

namespace {

using tuza::rt::HeldLock;
using Kind = HeldLock::Kind;

struct Held {
  static constexpr std::size_t kMax = 8;
  int count = 0;             // all locks held
  std::size_t recorded = 0;  // the number of locks in `locks`
  std::uint32_t slots = 0;   // g_slots when the first of them was taken
  std::array<HeldLock, kMax> locks{};
};

// Mapped for Ms only. A thread-local of this size would use up the room that libc keeps for those of libraries.
thread_local constinit Held* t_held = nullptr;

// How often the slots of an object file were replaced. Incremented with release by the thread that replaced them;
// record() and held_locks_are_certain() load it with acquire, so that they also see the replaced slots.
constinit std::atomic<std::uint32_t> g_slots{0};

// What a function with a frame pointer stores at its frame address, on both supported processors.
struct Frame {
  const Frame* caller;
  std::uintptr_t return_address;
};

std::uintptr_t without_signature(std::uintptr_t return_address) {
#if defined(__aarch64__)
  // Code compiled with -mbranch-protection signs return addresses. hint #7 is xpaclri, a no-op on processors
  // without signatures.
  asm("mov x30, %0\n\thint #7\n\tmov %0, x30" : "+r"(return_address) : : "x30");
#endif
  return return_address;
}

// Stores the callers of the function that has `frame`, and returns their number.
//
// The walk follows frame pointers and does not use the unwinder. It runs inside pthread_mutex_lock, called
// from anywhere with anything locked. The unwinder locks mutexes of its own (those of registered frames, and
// the loader's), and if the unwinder is the caller, a walk would wait for the very mutex just taken. A walk
// along frame pointers calls nothing, and takes a few nanoseconds per frame.
//
// The price: code compiled without frame pointers (libraries, the program's own code) uses the register
// freely. The first address is always right. Frames that leave the register alone are skipped; others end the
// walk or mislead it. But the walk reads nothing outside the goroutine's own stack, all of which is readable,
// and only moves upwards, so it ends. The report also contains the stack of the park, which comes from the
// unwinder.
std::uint8_t walk(const Frame* frame, std::span<std::uintptr_t> pcs) {
  const tuza::rt::Stack& stack = tuza::rt::current_m()->current->stack;  // g0's is unknown: one address
  std::uint8_t n = 0;
  for (;;) {
    const std::uintptr_t pc = without_signature(frame->return_address);
    if (pc == 0) return n;
    pcs[n++] = pc - 1;  // within the call, not after it
    const auto next = reinterpret_cast<std::uintptr_t>(frame->caller);
    const bool good = next > reinterpret_cast<std::uintptr_t>(frame) && next >= stack.low &&
                      next < stack.top && stack.top - next >= sizeof(Frame) && next % alignof(Frame) == 0;
    if (!good || n == pcs.size()) return n;
    frame = frame->caller;
  }
}

// The libc function behind ours, or that of a preloaded library. Threads that come first together look it up
// twice, with the same result.
template <class Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  [[nodiscard]] Function* find() {
    Function* next = next_.load(std::memory_order_relaxed);
    if (next == nullptr && dlsym != nullptr) {
      next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      next_.store(next, std::memory_order_relaxed);
    }
    return next;
  }
  template <class... Arguments>
  int operator()(Arguments... arguments) {
    return find()(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> next_{nullptr};
};

using Mutex = int(pthread_mutex_t*);
using MutexUntil = int(pthread_mutex_t*, const timespec*);
using MutexUntilClock = int(pthread_mutex_t*, clockid_t, const timespec*);
using Rwlock = int(pthread_rwlock_t*);
using RwlockUntil = int(pthread_rwlock_t*, const timespec*);
using RwlockUntilClock = int(pthread_rwlock_t*, clockid_t, const timespec*);

constinit Next<Mutex> g_lock("pthread_mutex_lock"), g_trylock("pthread_mutex_trylock"),
    g_unlock("pthread_mutex_unlock");
constinit Next<MutexUntil> g_timedlock("pthread_mutex_timedlock");
constinit Next<MutexUntilClock> g_clocklock("pthread_mutex_clocklock");
constinit Next<Rwlock> g_rdlock("pthread_rwlock_rdlock"), g_tryrdlock("pthread_rwlock_tryrdlock"),
    g_wrlock("pthread_rwlock_wrlock"), g_trywrlock("pthread_rwlock_trywrlock"),
    g_rwunlock("pthread_rwlock_unlock");
constinit Next<RwlockUntil> g_timedrdlock("pthread_rwlock_timedrdlock"),
    g_timedwrlock("pthread_rwlock_timedwrlock");
constinit Next<RwlockUntilClock> g_clockrdlock("pthread_rwlock_clockrdlock"),
    g_clockwrlock("pthread_rwlock_clockwrlock");

Kind kind_of(const pthread_mutex_t* mutex) {
  return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP ? Kind::kRecursiveMutex : Kind::kMutex;
}

// Null: the thread is not an M, or there is no memory.
Held* held_of_m() {
  if (tuza::rt::current_m() == nullptr) return nullptr;
  if (t_held == nullptr) t_held = static_cast<Held*>(tuza::rt::map_pages(sizeof(Held)));
  return t_held;
}

void record(const void* lock, Kind kind, const void* frame) {
  Held* of_m = held_of_m();
  if (of_m == nullptr) return;
  Held& held = *of_m;
  if (held.count == 0) held.slots = g_slots.load(std::memory_order_acquire);
  ++held.count;
  if (held.recorded == Held::kMax) return;
  HeldLock& entry = held.locks[held.recorded];
  entry.lock = lock;
  entry.kind = kind;
  entry.goroutine = tuza::rt::current_m()->current->id.get();
  entry.pcs_known = walk(static_cast<const Frame*>(frame), entry.pcs_room);
  ++held.recorded;
}

// `frame`: the frame of the function that the program called.
int taken(int result, pthread_mutex_t* mutex, const void* frame) {
  if (result == 0 || result == EOWNERDEAD) record(mutex, kind_of(mutex), frame);
  return result;
}
int taken(int result, pthread_rwlock_t* lock, Kind kind, const void* frame) {
  if (result == 0) record(lock, kind, frame);
  return result;
}

int given_back(int result, const void* lock) {
  if (result != 0 || t_held == nullptr) return result;
  Held& held = *t_held;
  for (std::size_t i = held.recorded; i-- > 0;) {
    if (held.locks[i].lock != lock) continue;
    std::copy(held.locks.begin() + i + 1, held.locks.begin() + held.recorded, held.locks.begin() + i);
    --held.recorded;
    --held.count;
    return 0;
  }
  // The lock is one of those that found no room, or was taken before counting began.
  if (held.count > static_cast<int>(held.recorded)) --held.count;
  return 0;
}

}  // namespace

// Asking for the frame address also makes the compiler set up a frame pointer.
#define TUZA_FRAME __builtin_frame_address(0)
#if defined(TUZA_INTERPOSE_LOCKS)
#define TUZA_OURS(name) name
#else
#define TUZA_OURS(name) tuza_##name
#endif

extern "C" {
int TUZA_OURS(pthread_mutex_lock)(pthread_mutex_t* mutex) noexcept {
  return taken(g_lock(mutex), mutex, TUZA_FRAME);
}
int TUZA_OURS(pthread_mutex_trylock)(pthread_mutex_t* mutex) noexcept {
  return taken(g_trylock(mutex), mutex, TUZA_FRAME);
}
int TUZA_OURS(pthread_mutex_timedlock)(pthread_mutex_t* mutex, const timespec* until) noexcept {
  return taken(g_timedlock(mutex, until), mutex, TUZA_FRAME);
}
int TUZA_OURS(pthread_mutex_clocklock)(pthread_mutex_t* mutex, clockid_t clock,
                                       const timespec* until) noexcept {
  return taken(g_clocklock(mutex, clock, until), mutex, TUZA_FRAME);
}
int TUZA_OURS(pthread_mutex_unlock)(pthread_mutex_t* mutex) noexcept {
  return given_back(g_unlock(mutex), mutex);
}

int TUZA_OURS(pthread_rwlock_rdlock)(pthread_rwlock_t* lock) noexcept {
  return taken(g_rdlock(lock), lock, Kind::kReadLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_tryrdlock)(pthread_rwlock_t* lock) noexcept {
  return taken(g_tryrdlock(lock), lock, Kind::kReadLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_timedrdlock)(pthread_rwlock_t* lock, const timespec* until) noexcept {
  return taken(g_timedrdlock(lock, until), lock, Kind::kReadLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_clockrdlock)(pthread_rwlock_t* lock, clockid_t clock,
                                          const timespec* until) noexcept {
  return taken(g_clockrdlock(lock, clock, until), lock, Kind::kReadLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_wrlock)(pthread_rwlock_t* lock) noexcept {
  return taken(g_wrlock(lock), lock, Kind::kWriteLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_trywrlock)(pthread_rwlock_t* lock) noexcept {
  return taken(g_trywrlock(lock), lock, Kind::kWriteLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_timedwrlock)(pthread_rwlock_t* lock, const timespec* until) noexcept {
  return taken(g_timedwrlock(lock, until), lock, Kind::kWriteLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_clockwrlock)(pthread_rwlock_t* lock, clockid_t clock,
                                          const timespec* until) noexcept {
  return taken(g_clockwrlock(lock, clock, until), lock, Kind::kWriteLock, TUZA_FRAME);
}
int TUZA_OURS(pthread_rwlock_unlock)(pthread_rwlock_t* lock) noexcept {
  return given_back(g_rwunlock(lock), lock);
}
}

namespace tuza::rt {
namespace {

template <class... Functions>
bool all_found(Functions&... functions) {
  return (... && (functions.find() != nullptr));
}

// No address of ours is known before the program is loaded, so the table is made at the first call.
std::span<const Replacement> replacements() {
#define TUZA_REPLACEMENT(name) \
  Replacement { #name, reinterpret_cast<std::uintptr_t>(&TUZA_OURS(name)) }
  static const std::array kAll{
      TUZA_REPLACEMENT(pthread_mutex_lock),         TUZA_REPLACEMENT(pthread_mutex_trylock),
      TUZA_REPLACEMENT(pthread_mutex_timedlock),    TUZA_REPLACEMENT(pthread_mutex_clocklock),
      TUZA_REPLACEMENT(pthread_mutex_unlock),       TUZA_REPLACEMENT(pthread_rwlock_rdlock),
      TUZA_REPLACEMENT(pthread_rwlock_tryrdlock),   TUZA_REPLACEMENT(pthread_rwlock_timedrdlock),
      TUZA_REPLACEMENT(pthread_rwlock_clockrdlock), TUZA_REPLACEMENT(pthread_rwlock_wrlock),
      TUZA_REPLACEMENT(pthread_rwlock_trywrlock),   TUZA_REPLACEMENT(pthread_rwlock_timedwrlock),
      TUZA_REPLACEMENT(pthread_rwlock_clockwrlock), TUZA_REPLACEMENT(pthread_rwlock_unlock),
  };
#undef TUZA_REPLACEMENT
  return kAll;
}

ReplacedSlots replace_all() {
  return replace_slots(replacements(), [] { g_slots.fetch_add(1, std::memory_order_release); });
}

}  // namespace

#if defined(TUZA_INTERPOSE_LOCKS)
constexpr bool kInterposed = true;
#else
constexpr bool kInterposed = false;
#endif
constinit std::atomic<bool> g_checks_held_mutexes{kInterposed};

bool check_held_mutexes() {
  if (checks_held_mutexes()) return true;
  if (kTsan || kAsan) return false;
  if (!all_found(g_lock, g_trylock, g_unlock, g_timedlock, g_clocklock, g_rdlock, g_tryrdlock, g_wrlock,
                 g_trywrlock, g_rwunlock, g_timedrdlock, g_timedwrlock, g_clockrdlock, g_clockwrlock))
    return false;
  if (replace_all().refused != 0) return false;
  g_checks_held_mutexes.store(true, std::memory_order_relaxed);
  return true;
}

int held_mutexes() { return t_held == nullptr ? 0 : t_held->count; }

std::span<const HeldLock> held_locks() {
  return t_held == nullptr ? std::span<const HeldLock>() : std::span(t_held->locks).first(t_held->recorded);
}

bool held_locks_are_certain() {
  if (kInterposed || t_held == nullptr) return true;
  const bool refused = replace_all().refused != 0;
  if (!refused && t_held->slots == g_slots.load(std::memory_order_acquire)) return true;
  t_held->count = 0;
  t_held->recorded = 0;
  return false;
}

void forget_held_locks() {
  unmap_pages(t_held, sizeof(Held));
  t_held = nullptr;
}

}  // namespace tuza::rt
