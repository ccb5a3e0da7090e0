#include <tuza/sched/run.h>

#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/foreign_threads.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/process.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/lifecycle/end_hook.h>
#include <tuza/sched/rt/lifecycle/exit.h>
#include <tuza/sched/rt/lifecycle/lifecycle.h>
#include <tuza/sched/rt/report/deadlock.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/detail/destroy_locals.h>
#include <tuza/sched/sync/detail/run_mark.h>

#include <utility>

namespace tuza::rt {

int report_error(const Error& error) {
  Line() << "tuza: " << error.message() << "\n";
  return 1;
}

// The function of the main goroutine. It calls `main` once, and handles every way in which `main` ends,
// including goexit().
struct MainGoroutine {
  Sched& sched;
  MainFunction& main;
  int& status;

  void operator()() const {
    struct OnGoexit {
      Sched& sched;
      bool returned = false;
      ~OnGoexit() {
        if (!returned) sched.main_goexited.store(true);
      }
    } on_goexit{sched};
    {
      const Enter rt;
      sched.main_g.store(rt.g(), std::memory_order_release);
    }
    status = main();
    destroy_locals();  // their destructors may need the runtime
    run_end_hooks();
    on_goexit.returned = true;
    const Enter rt;
    if (!claim_end(sched)) return;  // E1: exit() was first
    stop_runtime(sched);
    sched.main_done.wake();
  }
};

int run_main(const RunOptions& options, MainFunction main, const std::source_location& where) {
  if (is_forked_child()) refuse_in_forked_child();
  if (current_m() != nullptr) fatal("tuza::run inside a goroutine");
  watch_forks();
  watch_exit();
  const ProcessSetup process;
  const KnownThread caller;
  Sched& sched = *start_runtime(options);
  int status = 0;
  // S6.
  const GoOptions go_options{
      .name = "main", .stack_bytes = options.stack_bytes, .stack_setting = "RunOptions::stack_bytes"};
  const Spawned spawned = spawn(go_options, MainGoroutine{sched, main, status}, true, where);
  if (spawned != Spawned::kYes) spawn_failed(spawned);
  // As at the end of an ExternalWaker. But where an M runs or starts, it looks for itself before it sleeps, and there may
  // be no thread for another one.
  if (sched.external_wakers.fetch_sub(1, std::memory_order_seq_cst) == 1 && stands_still(sched)) {
    nudge_idle_m(sched);
  }
  sched.main_done.sleep();
  end_runtime(sched, Afterwards::kUnmap);
  return status;
}

}  // namespace tuza::rt
