#include <tuza/sched/sync/pool.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {

void check_pool_unused(const PoolLists& lists, const RunMark& run) {
  if (lists.in_use() != 0 && run.is_on()) fatal("Pool destroyed while its objects are in use");
}

}  // namespace tuza::rt
