#include <tuza/sched/rt/base/pids_max.h>

namespace tuza::rt {

// Cgroups are Linux's.
std::uint64_t reached_pids_max() { return kNoPidsMax; }

}  // namespace tuza::rt
