#include <tuza/sched/rt/base/thread_name.h>

namespace tuza::rt {

void name_thread(pthread_t thread, const char* name) { pthread_setname_np(thread, name); }

}  // namespace tuza::rt
