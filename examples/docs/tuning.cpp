// The code of docs/operate/tuning.md.
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>

namespace tuning_page {

//! [run]
int run_with_limits() {
  return tuza::run({.max_procs = 4, .stack_bytes = 1 << 20}, [] {
    tuza::set_max_threads(2000);
    // ...
  });
}
//! [run]

}  // namespace tuning_page
