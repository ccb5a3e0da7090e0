#include <tuza/sched/rt/heavy_fence.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/check.h>

namespace tuza::rt {

bool heavy_fence_works() {
  return sys::invoke(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
         sys::invoke(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void heavy_fence() { TUZA_CHECK(sys::invoke(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0); }

}  // namespace tuza::rt
