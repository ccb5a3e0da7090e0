#include <tuza/sched/rt/idle/join_thread.h>

namespace tuza::rt {

// Whether the thread has ended is unknown. It is in its last lines, so nobody waits for it.
bool try_join(pthread_t thread) {
  pthread_detach(thread);
  return true;
}

// Without a limit: a destructor of a thread_local that never returns keeps the caller.
bool join_until(pthread_t thread, std::int64_t) {
  pthread_join(thread, nullptr);
  return true;
}

}  // namespace tuza::rt
