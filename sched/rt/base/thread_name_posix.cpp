#include <tuza/sched/rt/base/thread_name.h>

namespace tuza::rt {

void name_thread(pthread_t, const char*) {}

}  // namespace tuza::rt
