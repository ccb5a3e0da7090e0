// Umbrella header of tuza::sched: goroutines, synchronization, and time.
//
//   int main() {
//     return tuza::run([] {
//       tuza::Chan<int> numbers;
//       tuza::go([&] { numbers.send(1); });
//       numbers.recv();
//     });
//   }
//
// Sockets and files: <tuza/net.h>. HTTP: <tuza/http.h>. Each header included here may also be included on its own.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/blocking.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/goroutine_dump.h>
#include <tuza/sched/join_errors.h>
#include <tuza/sched/log.h>
#include <tuza/sched/per_p.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/result.h>
#include <tuza/sched/run.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/try.h>
#include <tuza/sync.h>
#include <tuza/time.h>
