#include <tuza/sched/rt/base/heavy_fence.h>

namespace tuza::rt {

// POSIX has no such barrier: the fast side executes the fence.
bool heavy_fence_works() { return false; }

Fence heavy_fence() { return Fence::kRefused; }

}  // namespace tuza::rt
