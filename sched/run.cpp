#include <tuza/sched/run.h>

#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/process.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/lifecycle/end_hook.h>
#include <tuza/sched/rt/lifecycle/exit.h>
#include <tuza/sched/rt/lifecycle/lifecycle.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/fork.h>
#include <tuza/sched/sync/goroutine_local.h>
#include <tuza/sched/sync/run_mark.h>

#include <utility>

namespace tuza::rt {

// Found by the gdb script and by threads that are not Ms.
extern "C" {
std::atomic<Sched*> tuza_sched{nullptr};
}

namespace {

// Threads inside an ExternalEntry. Outside Sched, so that it can be touched when there is none.
std::atomic<std::uint32_t> g_external{0};

}  // namespace

Sched* active() { return tuza_sched.load(std::memory_order_acquire); }

std::uint64_t current_run() {
  const ExternalEntry entry;
  return entry.sched() == nullptr ? 0 : entry.sched()->run_number;
}

void wait_for_external_entries(std::int64_t deadline_ns) {
  while (g_external.load(std::memory_order_seq_cst) != 0 && now_ns() < deadline_ns) {
    sys::invoke(SYS_sched_yield);
  }
}

ExternalEntry::ExternalEntry(const M* m) {
  if (m != nullptr) {
    sched_ = m->sched;
    return;
  }
  // seq_cst, against end_runtime(): either the thread is seen in the count, or it sees that the runtime is gone.
  g_external.fetch_add(1, std::memory_order_seq_cst);
  sched_ = tuza_sched.load(std::memory_order_seq_cst);
  counted_ = sched_ != nullptr;
  // Threads that keep asking although there is no runtime must not keep it waiting.
  if (!counted_) g_external.fetch_sub(1, std::memory_order_release);
}

ExternalEntry::ExternalEntry(Adopt) : sched_(tuza_sched.load(std::memory_order_seq_cst)), counted_(true) {}

bool ExternalEntry::detach() { return std::exchange(counted_, false); }

ExternalEntry::~ExternalEntry() {
  if (counted_) g_external.fetch_sub(1, std::memory_order_release);
}

int report_error(const Error& error) {
  Line() << "tuza: " << error.message() << "\n";
  return 1;
}

// The main goroutine's function. However it ends, by goexit() too, `main` is called once.
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
    status = main();
    destroy_locals();  // they may need the runtime
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
  Sched& sched = *start_runtime(options);
  int status = 0;
  // S6.
  const GoOptions go_options{.name = "main", .stack_bytes = options.stack_bytes};
  if (spawn(go_options, MainGoroutine{sched, main, status}, true, where) != Spawned::kYes) spawn_failed();
  if (sched.external_wakers.fetch_sub(1, std::memory_order_seq_cst) == 1) nudge_idle_m(sched);
  sched.main_done.sleep();
  end_runtime(sched, Afterwards::kUnmap);
  return status;
}

}  // namespace tuza::rt
