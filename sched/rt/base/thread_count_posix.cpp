#include <tuza/sched/rt/base/thread_count.h>

namespace tuza::rt {

// POSIX does not tell.
std::int64_t count_threads() { return 0; }

}  // namespace tuza::rt
