#include <tuza/sched/rt/base/sanitizer_threads.h>

namespace tuza::rt {

// Threads are not counted (rt/base/thread_count.h), so none need be told from others.
std::int64_t sanitizer_threads() { return 0; }

}  // namespace tuza::rt
