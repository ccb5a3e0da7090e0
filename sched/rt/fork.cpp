#include <tuza/sched/rt/fork.h>

#include <pthread.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/sched.h>

#include <atomic>

namespace tuza::rt {
namespace {

std::atomic<bool> g_forked{false};

void in_child() {
  if (active() == nullptr) return;
  g_forked.store(true, std::memory_order_relaxed);
  if (M* m = current_m(); m != nullptr) m->taken.fetch_or(taken::kForked, std::memory_order_relaxed);
}

}  // namespace

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, &in_child);
  if (registered != 0) fatal("pthread_atfork() failed");
}

bool is_forked_child() { return g_forked.load(std::memory_order_relaxed); }

void refuse_in_forked_child() {
  fatal("the child of a fork() has none of the threads that run goroutines: it may only exec or _exit");
}

}  // namespace tuza::rt
