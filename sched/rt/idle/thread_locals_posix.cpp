#include <tuza/sched/rt/idle/thread_locals.h>

namespace tuza::rt {

std::size_t thread_locals_on_stack() { return 0; }

}  // namespace tuza::rt
