#include <tuza/sched/rt/base/kernel_slice.h>

namespace tuza::rt {

// POSIX knows priorities, which need a privilege, but no slices.
void hint_kernel_slice(std::int32_t, std::int64_t) {}

}  // namespace tuza::rt
