#include <tuza/sched/rt/lifecycle/lifecycle.h>

#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/heavy_fence.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/idle/malloc_arenas.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/lifecycle/abandon.h>
#include <tuza/sched/rt/lifecycle/end_hook.h>
#include <tuza/sched/rt/lifecycle/environment.h>
#include <tuza/sched/rt/report/crash_report.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/testing/chaos.h>
#include <tuza/sched/rt/testing/fake_time.h>
#include <tuza/sched/run.h>

#include <algorithm>
#include <new>

namespace tuza::rt {
namespace {

// Ms that are in user code when the runtime stops have this long to reach a parking call.
constexpr std::int64_t kComeBackNs = 200'000'000;
// After that, the destructors of the thread_locals of the Ms' threads have this long.
constexpr std::int64_t kJoinNs = 1'000'000'000;

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

std::int32_t choose_procs(Sched& sched, const RunOptions& options) {
  sched.cpu_limit.find();
  std::int32_t n = options.max_procs > 0 ? std::min(options.max_procs, kMaxProcsLimit) : 0;
  if (n == 0) n = procs_from_environment();
  sched.procs_fixed = n != 0;
  return n != 0 ? n : sched.cpu_limit.cpus();
}

// Makes Ms check `stopping`: idle Ms, the M in the poller, and Ms whose goroutines make parking calls without
// having to wait.
void wake_all_ms(Sched& sched) {
  if (IoSource* source = sched.poll.source()) source->wake();
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    const P& p = sched.p(i);
    if (M* m = p.m.load(std::memory_order_acquire); m != nullptr) ask_to_yield(m, p.picks.get());
  }
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
    sched.ms[i].note.wake();
  }
}

// Returns true when all Ms have left, false if some are lost in user code.
bool wait_for_ms(Sched& sched) {
  const std::int64_t deadline = now_ns() + kComeBackNs;
  for (;;) {
    const std::uint32_t live = sched.ms_live.load(std::memory_order_acquire);
    if (live == 0) return true;
    const std::int64_t left = deadline - now_ns();
    if (left <= 0) return false;
    // Repeated at intervals, because one wake is not enough: an M that was made while stop_runtime() woke the
    // others still goes to sleep, or takes the poll role after another thread has consumed the wake.
    wake_all_ms(sched);
    futex_wait(sched.ms_live, live, std::min<std::int64_t>(left, 1'000'000));
  }
}

// Makes each thread that has not come back sleep for ever at its next call. Waits for the threads that are in a
// call at this moment.
void shut_out_lost_ms(Sched& sched) {
  constexpr std::int64_t kNapNs = 1'000'000;
  constexpr int kNaps = 200;
  const std::uint32_t n = sched.ms_made.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < n; ++i) sched.ms[i].taken.fetch_or(taken::kEnded, std::memory_order_seq_cst);
  // With a fence, either an enter sees the bit, or in_rt is seen here. Without a fence, in_rt may be seen late,
  // by nanoseconds.
  if (!sched.fence_on_enter) (void)heavy_fence();
  const auto inside = [](const M& m) {
    return m.thread_id.get() != 0 && m.in_rt.load(std::memory_order_acquire) != 0;
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    for (int nap = 0; nap < kNaps && inside(sched.ms[i]); ++nap) futex_wait(sched.ms_live, 0, kNapNs);
  }
}

}  // namespace

Sched* start_runtime(const RunOptions& options) {
  static std::atomic<std::uint64_t> runs{0};
  // S1: memory.
  Sched& sched = *map_sched();
  sched.run_number = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  sched.started_ns = now_ns();
  sched.end_hooks = make_end_hooks();
  sched.coarse_ns.store(sched.started_ns);
  // Until the main goroutine exists, the thread that starts it counts as an external waker.
  sched.external_wakers.store(1);
  // S2: the options and the Ps.
  sched.debug = DebugOptions::from_environment();
  sched.slice = SliceOptions::from_environment();
  chaos::choose_seed();
  pthread_sigmask(SIG_SETMASK, nullptr, &sched.signal_mask);
  set_procs(sched, choose_procs(sched, options));
  // S3: from here on threads that are not Ms find the runtime.
  Sched* none = nullptr;
  if (!tuza_sched.compare_exchange_strong(none, &sched))
    fatal("tuza::run called while another tuza::run is active");
  // S4: state that belongs to the process.
  install_crash_reports();
  if (sched.debug.held_mutexes && !check_held_mutexes()) {
    Line() << "TUZA_DEBUG: heldmutex has no effect in static programs and with sanitizers\n";
  }
  sched.preempt_signal.install(sched.debug.async_preempt_off ? 0 : sched.slice.signal, sched.signal_mask);
  allow_an_arena_per_m();
  measure_thread_locals();
  sched.fence_on_enter = sched.debug.membarrier_off || !heavy_fence_works();
  // S5: the threads that make Ms and watch them.
  sched.maker.start(sched);
  sched.sysmon.start(sched);
  return &sched;
}

bool claim_end(Sched& sched) { return !sched.end_claimed.exchange(true, std::memory_order_acq_rel); }

void stop_runtime(Sched& sched) {
  sched.stopping.store(true, std::memory_order_seq_cst);
  for (std::int32_t i = 0, n = sched.procs_made.load(); i < n; ++i) {
    sched.p(i).attention.store(true, std::memory_order_seq_cst);
  }
  wake_all_ms(sched);
}

void end_runtime(Sched& sched, Afterwards afterwards) {
  // E3: sysmon resumes the suspended threads before it ends.
  sched.sysmon.stop();
  sched.maker.stop();
  // E4: the Ms, and the thread_locals of their threads.
  const bool all_left = wait_for_ms(sched);
  if (!all_left) shut_out_lost_ms(sched);
  join_threads(sched, now_ns() + kJoinNs);
  // E5: the waits of goroutines left behind end.
  const bool stacks_forgotten = withdraw_waits(sched);
  keep_allocations(sched);
  // E6: I/O.
  if (IoSource* source = sched.poll.source()) source->detach();
  // E7: state that belongs to the process.
  remove_crash_reports();
  sched.preempt_signal.remove();
  // E8: from here on no thread finds the runtime.
  tuza_sched.store(nullptr, std::memory_order_seq_cst);
  // The wait is bounded for exit(), because the thread that called exit() may itself hold an entry.
  wait_for_external_entries(afterwards == Afterwards::kKeep ? now_ns() + kJoinNs : TimerHeap::kNever);
  FakeTime::runtime_ended();
  for (std::int32_t i = 0; i < sched.procs_made.load(); ++i) sched.ps[i].timers.disarm_all();
  // E9: memory. If any of it may still be in use, all of it stays mapped for ever.
  const bool unused = all_left && stacks_forgotten && !sched.exiting.load(std::memory_order_acquire);
  if (unused && afterwards == Afterwards::kUnmap) unmap_sched(&sched);
}

}  // namespace tuza::rt
