// Threads that their Ms no longer use, kept until they are joined.
//
// An M gets another thread at once. The old thread may still run the destructors of its thread_locals, which
// are the program's code and may take any time. No thread therefore waits for it before the runtime ends: the
// maker of Ms joins, now and then, the threads that have terminated.
//
// Thread-safe. Allocates once; add_this_thread() neither waits nor allocates.
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

  // Adds the calling thread, which does no more work for the runtime.
  void add_this_thread();

  // Joins the threads that have terminated, without waiting. Returns the number of threads left. Only one
  // thread may call it at a time.
  std::uint32_t join_some();
  // Joins all threads that terminate before `deadline_ns`, and detaches the others, and every thread that is
  // added from now on: a thread that comes back late.
  void join_all(std::int64_t deadline_ns);

 private:
  static constexpr std::uint32_t kMax = 65'536;  // threads beyond it are detached

  RawMutex mutex_;
  pthread_t* threads_;                              // kMax slots
  std::uint32_t size_ TUZA_GUARDED_BY(mutex_) = 0;  // only the joining thread lowers it
  bool closed_ TUZA_GUARDED_BY(mutex_) = false;     // join_all() has begun
};

}  // namespace tuza::rt
