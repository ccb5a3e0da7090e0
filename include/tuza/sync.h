// Umbrella header of the synchronization primitives: channels, locks, contexts, groups. Other threads than goroutines
// may use them as well.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/sync/barrier.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/cond.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/error_group.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/goroutine_local.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/once.h>
#include <tuza/sched/sync/pool.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/scope.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/shared_chan.h>
#include <tuza/sched/sync/singleflight.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/resource_limits.h>
#include <tuza/sched/time/resource_pool.h>
