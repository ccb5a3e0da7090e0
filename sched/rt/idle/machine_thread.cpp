#include <tuza/sched/rt/idle/machine_thread.h>

#include <signal.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/arch/thread_end.h>
#include <tuza/sched/arch/thread_id.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/base/kernel_slice.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/thread_cpu.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/base/thread_name.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/malloc_arenas.h>
#include <tuza/sched/rt/idle/thread_locals.h>
#include <tuza/sched/rt/lifecycle/exit.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/testing/chaos.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

namespace tuza::rt {
namespace {

// g0 only schedules, but sanitizers need more for their own frames.
constexpr std::size_t kThreadStackBytes = std::size_t{256} << 10;
constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;

// rt/idle/thread_locals.h, in whole pages.
std::atomic<std::size_t> g_thread_local_bytes{0};

std::size_t thread_stack_bytes() {
  return kThreadStackBytes + g_thread_local_bytes.load(std::memory_order_relaxed);
}

M* new_m(Sched& sched) TUZA_REQUIRES(sched.ms_mutex) {
  const std::uint32_t id = sched.ms_made.load(std::memory_order_relaxed);
  if (id == Sched::kMaxMs) return nullptr;
  M* m = ::new (static_cast<void*>(&sched.ms[id])) M(id, chaos::seed_of(id));
  m->sched = &sched;
  if (sched.fence_on_enter) m->taken.store(taken::kFence, std::memory_order_relaxed);
  sched.ms_made.store(id + 1, std::memory_order_release);
  return m;
}

// Prepares an M whose thread has ended, or was refused, for another thread. The M is not constructed anew,
// because other threads may be reading it.
M* take_spent_m(Sched& sched) TUZA_REQUIRES(sched.ms_mutex) {
  M* m = sched.ms_spent;
  if (m == nullptr) return nullptr;
  sched.ms_spent = std::exchange(m->idle_next, nullptr);
  m->starting = m->fresh = true;
  m->thread_is_spent = m->has_forked = false;
  m->last_p_id = -1;
  return m;
}

// Returns 0 or an errno.
int create_thread(pthread_t& thread, void* (*main)(void*), void* argument) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, thread_stack_bytes());
  const int error = pthread_create(&thread, &attr, main, argument);
  pthread_attr_destroy(&attr);
  return error;
}

void* m_thread_main(void* argument) {
  auto* m = static_cast<M*>(argument);
  m->may_run_programs = false;
  pthread_sigmask(SIG_SETMASK, &m->sched->signal_mask, nullptr);
  name_thread(pthread_self(), "tuza-m");
  begin_m(m);
  // Runs before the thread has a P: where threads share arenas, it may have to wait for an arena's lock.
  if (!has_arena_per_m()) allow_programs(m);
  m->sched->preempt_signal.unblock();
  hint_kernel_slice(0, kWorkerKernelSliceNs);
  m->sched->maker.help(*m->sched);
  schedule_loop(m);
  end_m(m);
  return nullptr;
}

}  // namespace

void measure_thread_locals() {
  constexpr std::size_t kPage = 4096;
  const std::size_t sum = thread_locals_on_stack();
  g_thread_local_bytes.store((sum + kPage - 1) / kPage * kPage, std::memory_order_relaxed);
}

int start_m(Sched& sched) {
  M* m = nullptr;
  {
    const LockGuard lock(sched.ms_mutex);
    m = take_spent_m(sched);
    if (m == nullptr) m = new_m(sched);
  }
  if (m == nullptr) return EAGAIN;
  if (m->signal_stack == nullptr) m->signal_stack = map_pages(kSignalStackBytes);
  sched.ms_live.fetch_add(1, std::memory_order_relaxed);
  pthread_t thread;
  const int error = m->signal_stack == nullptr ? ENOMEM : create_thread(thread, &m_thread_main, m);
  if (error == 0) return 0;
  sched.ms_live.fetch_sub(1, std::memory_order_relaxed);
  const LockGuard lock(sched.ms_mutex);
  m->idle_next = std::exchange(sched.ms_spent, m);
  return error;
}

void allow_programs(M* m) {
  m->arena = take_own_arena();
  if (!can_allocate()) return;  // noticing the end allocates, and without memory libc ends the process
  notice_thread_end(&thread_ends);
  m->may_run_programs = true;
}

void begin_m(M* m) {
  set_current_m(m);
  thread_becomes_known();
  m->known = true;
  m->stack_mark = reinterpret_cast<std::uintptr_t>(some_stack_address());
  m->exceptions = thread_exception_state();
  m->thread_id = own_thread_id();
  m->cpu_clock = own_cpu_clock();
  {
    // The thread itself does this, because it may end before pthread_create() has returned.
    const LockGuard lock(m->sched->ms_mutex);
    m->thread = pthread_self();
    m->has_thread = true;
  }
  m->g0.status.store(GStatus::kRunning, std::memory_order_relaxed);
  m->g0.rt_depth = 1;
  m->g0.last_m = m;
  m->g0.sanitizer.thread_starts();
  m->current = &m->g0;
  stack_t alternate{};
  alternate.ss_sp = m->signal_stack;
  alternate.ss_size = kSignalStackBytes;
  sigaltstack(&alternate, &m->previous_signal_stack);
}

bool on_own_stack(const M& m) {
  constexpr std::uintptr_t kFrames = 64 << 10;  // for the frames that lead to begin_m()
  const auto here = reinterpret_cast<std::uintptr_t>(some_stack_address());
  return here > m.stack_mark - thread_stack_bytes() && here < m.stack_mark + kFrames;
}

void m_becomes_foreign(M* m) {
  if (std::exchange(m->known, false)) thread_becomes_foreign();
}

void end_m(M* m) {
  m_becomes_foreign(m);
  stack_t restore = m->previous_signal_stack;
  if (restore.ss_sp == nullptr) restore.ss_flags = SS_DISABLE;
  sigaltstack(&restore, nullptr);
  set_current_m(nullptr);
  forget_held_locks();
  m->thread_id = 0;
  Sched& sched = *m->sched;
  bool to_join = false;
  {
    const LockGuard lock(sched.ms_mutex);
    to_join = std::exchange(m->has_thread, false);  // unless join_threads() has given up on this thread
    m->idle_next = std::exchange(sched.ms_spent, m);
  }
  if (to_join) sched.ended_threads.add_this_thread();
  sched.maker.request(MMaker::Request::kJoin);
  // This is the last access: once the count is down, the memory of M and Sched may be unmapped. The wake only
  // uses the address as a name.
  if (sched.ms_live.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(sched.ms_live, 1);
}

void join_threads(Sched& sched, std::int64_t deadline_ns) {
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
    const LockGuard lock(sched.ms_mutex);
    if (std::exchange(sched.ms[i].has_thread, false)) pthread_detach(sched.ms[i].thread);
  }
  sched.ended_threads.join_all(deadline_ns);
}

void unmap_m(M& m) { unmap_pages(m.signal_stack, kSignalStackBytes); }

int start_thread_with(pthread_t& thread, const char* name, void* (*main)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = create_thread(thread, main, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) name_thread(thread, name);
  return error;
}

void join_helper_thread(pthread_t thread) { pthread_join(thread, nullptr); }

void no_first_thread(const char* which, int error) {
  begin_last_report();
  {
    Line text;
    text << "tuza: the system refuses the first threads of the runtime (" << which << "), with stacks of "
         << thread_stack_bytes() / 1024 << " KiB, "
         << g_thread_local_bytes.load(std::memory_order_relaxed) / 1024 << " of them for thread_locals: ";
    explain_refused_thread(text, error);
    text << "\n";
  }
  std::_Exit(1);
}

}  // namespace tuza::rt
