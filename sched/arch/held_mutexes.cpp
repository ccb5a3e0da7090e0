#include <tuza/sched/arch/held_mutexes.h>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

thread_local constinit int t_held = 0;

// libc's function behind ours. Threads that come first together look it up twice, with the same result.
template <class Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  template <class... Arguments>
  int operator()(Arguments... arguments) {
    Function* next = next_.load(std::memory_order_relaxed);
    if (next == nullptr) {
      next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      next_.store(next, std::memory_order_relaxed);
    }
    return next(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> next_{nullptr};
};

using Mutex = int(pthread_mutex_t*);
using MutexUntil = int(pthread_mutex_t*, clockid_t, const timespec*);
using Rwlock = int(pthread_rwlock_t*);

constinit Next<Mutex> g_lock("pthread_mutex_lock"), g_trylock("pthread_mutex_trylock"),
    g_unlock("pthread_mutex_unlock");
constinit Next<MutexUntil> g_clocklock("pthread_mutex_clocklock");
constinit Next<Rwlock> g_rdlock("pthread_rwlock_rdlock"), g_tryrdlock("pthread_rwlock_tryrdlock"),
    g_wrlock("pthread_rwlock_wrlock"), g_trywrlock("pthread_rwlock_trywrlock"),
    g_rwunlock("pthread_rwlock_unlock");

int taken(int result) {
  if (result == 0 || result == EOWNERDEAD) ++t_held;
  return result;
}
int given_back(int result) {
  // What was locked before the first count (by libraries, while the program was loaded) is not counted.
  if (result == 0 && t_held > 0) --t_held;
  return result;
}

}  // namespace

extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept { return taken(g_lock(mutex)); }
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept { return taken(g_trylock(mutex)); }
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) noexcept {
  return taken(g_clocklock(mutex, clock, until));
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept { return given_back(g_unlock(mutex)); }
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept { return taken(g_rdlock(lock)); }
int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept { return taken(g_tryrdlock(lock)); }
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept { return taken(g_wrlock(lock)); }
int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept { return taken(g_trywrlock(lock)); }
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept { return given_back(g_rwunlock(lock)); }
}

namespace tuza::rt {

int held_mutexes() { return t_held; }

}  // namespace tuza::rt
