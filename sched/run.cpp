// Starting and stopping a runtime.
//
//   start   map Sched, Ps, Ms; start the maker of Ms and sysmon; spawn main, for which the maker brings an M
//   run     the calling thread is no M; it waits for stop (main_done)
//   stop    main returned: threads of others that use goroutines' stacks end (rt/end_hook.h);
//           stopping = true, every P wants attention, every idle M and the poller are woken;
//           each M leaves its loop when it comes to the scheduler
//   end     join the helper threads (sysmon lets those go on that are suspended), wait 200 ms for the Ms,
//           detach the I/O source, wait for external threads, unmap everything. If an M has not come back
//           nothing is unmapped, and `taken` tells it when it comes
#include <tuza/sched/run.h>

#include <tuza/sched/go.h>
#include <tuza/sched/rt/chaos.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/clock.h>
#include <tuza/sched/rt/crash_report.h>
#include <tuza/sched/rt/end_hook.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/fake_time.h>
#include <tuza/sched/rt/fork.h>
#include <tuza/sched/rt/heavy_fence.h>
#include <tuza/sched/rt/machine_thread.h>
#include <tuza/sched/rt/malloc_arenas.h>
#include <tuza/sched/rt/mapping.h>
#include <tuza/sched/rt/print.h>
#include <tuza/sched/rt/process.h>
#include <tuza/sched/rt/procs.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/goroutine_local.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tuza::rt {

// Found by the gdb script and by threads that are not Ms.
extern "C" {
std::atomic<Sched*> tuza_sched{nullptr};
}

namespace {

// Ms that are in user code when main returns get this long to come back.
constexpr std::int64_t kAbandonAfterNs = 200'000'000;

// Threads inside an ExternalEntry. Outside Sched, so that it can be touched when there is none.
std::atomic<std::uint32_t> g_external{0};

Sched* map_sched() {
  void* memory = map_pages(sizeof(Sched));
  void* ps = map_pages(sizeof(P) * kMaxProcsLimit);
  void* ms = map_pages(sizeof(M) * Sched::kMaxMs);
  if (memory == nullptr || ps == nullptr || ms == nullptr) fatal("no memory for the runtime");
  auto* sched = ::new (memory) Sched;
  sched->ps = static_cast<P*>(ps);
  sched->ms = static_cast<M*>(ms);
  leads_to_allocations(ps, sizeof(P) * kMaxProcsLimit);
  return sched;
}

void unmap_sched(Sched* sched) {
  for (std::int32_t i = 0; i < sched->procs_made.load(); ++i) {
    PerPCache::flush(sched->ps[i]);
    sched->ps[i].~P();
  }
  for (std::uint32_t i = 0; i < sched->ms_made.load(); ++i) unmap_m(sched->ms[i]);
  leads_nowhere(sched->ps, sizeof(P) * kMaxProcsLimit);
  unmap_pages(sched->ps, sizeof(P) * kMaxProcsLimit);
  unmap_pages(sched->ms, sizeof(M) * Sched::kMaxMs);
  delete_end_hooks(sched->end_hooks);
  sched->~Sched();
  unmap_pages(sched, sizeof(Sched));
}

// TUZA_MAXPROCS, if it is set to a number that makes sense; 0 otherwise.
std::int32_t procs_from_environment() {
  const char* text = std::getenv("TUZA_MAXPROCS");
  if (text == nullptr || *text == '\0') return 0;
  std::int32_t n = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), n);
  if (error == std::errc{} && *end == '\0' && n >= 1 && n <= kMaxProcsLimit) return n;
  Line() << "tuza: TUZA_MAXPROCS: expected a number from 1 to " << kMaxProcsLimit << ", not '" << text
         << "'; ignored\n";
  return 0;
}

std::int32_t choose_procs(Sched& sched, const RunOptions& options) {
  sched.cpu_limit.find();
  std::int32_t n = options.max_procs > 0 ? std::min(options.max_procs, kMaxProcsLimit) : 0;
  if (n == 0) n = procs_from_environment();
  sched.procs_fixed = n != 0;
  return n != 0 ? n : sched.cpu_limit.cpus();
}

void stop(Sched& sched) {
  sched.stopping.store(true, std::memory_order_seq_cst);
  for (std::int32_t i = 0, n = sched.procs_made.load(); i < n; ++i) {
    sched.p(i).attention.store(true, std::memory_order_seq_cst);
  }
  if (IoSource* source = sched.poll.source()) source->wake();
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
    sched.ms[i].note.wake();
  }
  sched.main_done.wake();
}

// True when all Ms have left; false if some are lost in user code.
bool wait_for_ms(Sched& sched) {
  const std::int64_t deadline = now_ns() + kAbandonAfterNs;
  for (;;) {
    const std::uint32_t live = sched.ms_live.load(std::memory_order_acquire);
    if (live == 0) return true;
    const std::int64_t left = deadline - now_ns();
    if (left <= 0) return false;
    // An M that was made while stop() woke the others still goes to sleep, or takes the poll role after
    // somebody else has used up the wake: again, now and then.
    if (IoSource* source = sched.poll.source()) source->wake();
    for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
      sched.ms[i].note.wake();
    }
    futex_wait(sched.ms_live, live, std::min<std::int64_t>(left, 1'000'000));
  }
}

}  // namespace

Sched* active() { return tuza_sched.load(std::memory_order_acquire); }

ExternalEntry::ExternalEntry(const M* m) {
  if (m != nullptr) {
    sched_ = m->sched;
    return;
  }
  if (is_forked_child()) refuse_in_forked_child();
  // seq_cst, against end(): either the thread is seen in the count, or it sees that the runtime is gone.
  g_external.fetch_add(1, std::memory_order_seq_cst);
  sched_ = tuza_sched.load(std::memory_order_seq_cst);
  counted_ = sched_ != nullptr;
  // Threads that keep asking although there is no runtime must not keep end() waiting.
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

namespace {

void start(Sched& sched, const RunOptions& options) {
  static std::atomic<std::uint64_t> runs{0};
  sched.run_number = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  sched.started_ns = now_ns();
  sched.end_hooks = make_end_hooks();
  sched.coarse_ns.store(sched.started_ns);
  sched.debug = DebugOptions::from_environment();
  sched.slice = SliceOptions::from_environment();
  chaos::choose_seed();
  pthread_sigmask(SIG_SETMASK, nullptr, &sched.signal_mask);
  set_procs(sched, choose_procs(sched, options));
  Sched* none = nullptr;
  if (!tuza_sched.compare_exchange_strong(none, &sched)) fatal("tuza::run inside tuza::run");
  install_crash_reports();
  sched.preempt_signal.install(sched.debug.async_preempt_off ? 0 : sched.slice.signal, sched.signal_mask);
  allow_an_arena_per_m();
  sched.fence_on_enter = sched.debug.membarrier_off || !heavy_fence_works();
  sched.maker.start(sched);
  sched.sysmon.start(sched);
}

void end(Sched* sched) {
  sched->sysmon.stop();
  sched->maker.stop();
  const bool all_left = wait_for_ms(*sched);
  IoSource* source = sched->poll.source();
  if (source != nullptr) source->detach();
  remove_crash_reports();
  sched->preempt_signal.remove();
  tuza_sched.store(nullptr, std::memory_order_seq_cst);
  while (g_external.load(std::memory_order_seq_cst) != 0) sys::invoke(SYS_sched_yield);
  FakeTime::runtime_ended();
  for (std::int32_t i = 0; i < sched->procs_made.load(); ++i) sched->ps[i].timers.disarm_all();
  if (all_left) {
    unmap_sched(sched);
    return;
  }
  // Threads lost in user code still use their stacks; when they come back they must find `taken`.
  for (std::uint32_t i = 0, n = sched->ms_made.load(); i < n; ++i) sched->ms[i].taken.fetch_or(taken::kEnded);
}

}  // namespace

int run_main(const RunOptions& options, MainFunction main, const std::source_location& where) {
  if (is_forked_child()) refuse_in_forked_child();
  if (current_m() != nullptr) fatal("tuza::run inside a goroutine");
  watch_forks();
  const ProcessSetup process;
  Sched* sched = map_sched();
  start(*sched, options);
  int status = 0;
  const GoOptions go_options{.name = "main", .stack_bytes = options.stack_bytes};
  const Spawned spawned = spawn(
      go_options,
      [&status, &main, sched] {
        struct OnGoexit {
          Sched* sched;
          bool returned = false;
          ~OnGoexit() {
            if (!returned) sched->main_goexited.store(true);
          }
        } on_goexit{sched};
        status = main();
        destroy_locals();  // they may need the runtime
        run_end_hooks();
        on_goexit.returned = true;
        const Enter rt;
        stop(*sched);
      },
      true, where);
  if (spawned != Spawned::kYes) spawn_failed();
  while (!sched->stopping.load(std::memory_order_acquire)) sched->main_done.sleep();
  end(sched);
  return status;
}

}  // namespace tuza::rt
