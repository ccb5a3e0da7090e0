#include <tuza/sched/arch/thread_id.h>

#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza {

// Asks the kernel each time: the child of a fork() has another number.
std::int32_t own_thread_id() { return static_cast<std::int32_t>(sys::invoke(SYS_gettid)); }

}  // namespace tuza
