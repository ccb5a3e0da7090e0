#include <tuza/sched/rt/base/heavy_fence.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <cerrno>

namespace tuza::rt {

bool heavy_fence_works() {
  return sys::invoke(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
         sys::invoke(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

Fence heavy_fence() {
  switch (sys::invoke(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)) {
    case 0: return Fence::kDone;
    case -ENOMEM:
    case -EINTR:
    case -EAGAIN: return Fence::kFailed;
    default: return Fence::kRefused;
  }
}

}  // namespace tuza::rt
