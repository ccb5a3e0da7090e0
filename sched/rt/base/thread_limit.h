// Why the system refuses a thread, in words.
//
// pthread_create() reports EAGAIN for every limit. The limits of the user (`ulimit -u`), of the cgroup (pids.max, systemd's
// TasksMax, an engine's --pids-limit), and of the address space are read here and named if they apply; a cgroup's only if
// it is reached at this moment, and then it alone.
//
// Allocates only for an Error. Makes some system calls, which block the M.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/rt/base/print.h>

#include <string_view>

namespace tuza::rt {

// "pids.max of the cgroup, 100, is reached", or the like. `error`: an errno of pthread_create().
void explain_refused_thread(Line& text, int error);

// "cannot create <what>: <why>", with `error` as its code. `what`: "the poller's thread".
Error thread_refused(std::string_view what, int error);

}  // namespace tuza::rt
