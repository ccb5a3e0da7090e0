// Threads whose Ms have done with them, until they are joined.
//
// An M gets another thread at once; the old one may still be busy with the destructors of its thread_locals, which are
// the program's code and may take any time. So nobody waits for it before the runtime ends: the maker of Ms joins now
// and then those that are over.
//
// Thread-safe. Allocates once; add() neither waits nor allocates.
#pragma once

#include <pthread.h>
#include <tuza/sched/rt/base/raw_mutex.h>

#include <cstdint>

namespace tuza::rt {

class EndedThreads {
 public:
  EndedThreads();
  ~EndedThreads();
  EndedThreads(const EndedThreads&) = delete;
  EndedThreads& operator=(const EndedThreads&) = delete;

  // The calling thread, which will do nothing more for the runtime.
  void add_this_thread();

  // Joins those that are over, without waiting. Returns how many are left. By one thread at a time.
  std::uint32_t join_some();
  // Joins all threads that terminate before `deadline_ns`, and detaches the others, and every thread that is
  // added from now on: a thread that comes back late.
  void join_all(std::int64_t deadline_ns);

 private:
  static constexpr std::uint32_t kMax = 65'536;  // beyond it threads are detached

  RawMutex mutex_;
  pthread_t* threads_;      // kMax slots
  std::uint32_t size_ = 0;  // guarded by mutex_; only who joins lowers it
  bool closed_ = false;     // guarded by mutex_: join_all() has begun
};

}  // namespace tuza::rt
