#include <tuza/sched/rt/base/fork.h>

#include <pthread.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/thread_id.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/sched.h>

#include <atomic>

namespace tuza::rt {
namespace {

std::atomic<bool> g_forked{false};
std::atomic<std::int32_t> g_forking{0};  // the forking thread; relaxed, because sysmon reads it repeatedly

void before_fork() {
  if (is_forked_child()) return;
  const Enter rt;
  if (G* g = rt.g(); g != nullptr) ++g->no_preempt;  // a forking thread must not be suspended
  g_forking.store(own_thread_id(), std::memory_order_relaxed);
  if (const ExternalEntry entry; entry.sched() != nullptr) entry.sched()->sysmon.scan_now();
}

void in_parent() {
  if (is_forked_child()) return;
  g_forking.store(0, std::memory_order_relaxed);
  if (M* m = current_m(); m != nullptr) {
    m->has_forked = true;
    m->current->no_preempt += static_cast<std::uint32_t>(-1);
  }
}

void in_child() {
  g_forking.store(0, std::memory_order_relaxed);
  if (active() == nullptr) return;
  g_forked.store(true, std::memory_order_relaxed);
  tuza_sched.store(nullptr, std::memory_order_relaxed);  // the runtime is the parent's
  if (M* m = current_m(); m != nullptr) m->taken.fetch_or(taken::kForked, std::memory_order_relaxed);
}

}  // namespace

void watch_forks() {
  static const int registered = pthread_atfork(&before_fork, &in_parent, &in_child);
  if (registered != 0) fatal("pthread_atfork() failed");
}

std::int32_t forking_thread() { return g_forking.load(std::memory_order_relaxed); }

bool is_forked_child() { return g_forked.load(std::memory_order_relaxed); }

void keep_thread_of_child() {
  if (M* m = current_m(); m != nullptr) m->has_forked = true;
}

void refuse_in_forked_child() {
  fatal("the child of a fork() has none of the threads that run goroutines: it may only exec or _exit");
}

}  // namespace tuza::rt
