#include <tuza/sched/rt/report/read_memory.h>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::rt {

bool read_memory_safely(void* into, const void* from, std::size_t bytes) {
  const struct iovec here{into, bytes}, there{const_cast<void*>(from), bytes};
  const long done = sys::invoke(SYS_process_vm_readv, sys::invoke(SYS_getpid), &here, 1, &there, 1, 0);
  return done == static_cast<long>(bytes);
}

}  // namespace tuza::rt
