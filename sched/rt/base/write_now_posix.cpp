#include <tuza/sched/rt/base/write_now.h>

#include <tuza/sched/arch/calls.h>

namespace tuza::rt {

// O_NONBLOCK would belong to all processes that share the open file.
long write_now(int fd, const char* text, std::size_t size) { return sys::write(fd, text, size); }

}  // namespace tuza::rt
