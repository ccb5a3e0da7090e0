#include <tuza/sched/sync/pool.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {

void check_pool_unused(const PoolLists& lists) {
  if (lists.in_use() != 0 && active() != nullptr) fatal("Pool destroyed while objects of it are in use");
}

}  // namespace tuza::rt
