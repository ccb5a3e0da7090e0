#include <tuza/sched/rt/base/foreign_threads.h>

#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/sanitizer_threads.h>
#include <tuza/sched/rt/base/thread_count.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {
namespace {

// The lower half counts the known threads, the upper half the changes, so that two equal values mean that none came or
// went in between. seq_cst: a thread that becomes foreign does so before it may wake a goroutine, and the thread that
// looks for a deadlock reads this before it looks whether a goroutine has been woken. An M does so also before its P is idle,
// and the thread that looks has found all Ps idle before it reads this.
constexpr std::uint64_t kChange = std::uint64_t{1} << 32;
std::atomic<std::uint64_t> g_known{0};
std::atomic<long> g_process{0};  // to which the count belongs

// The child of a fork() has inherited the count, but not the threads.
void forget_parents_threads() {
  const long process = sys::getpid();
  // relaxed: the first caller in a child is its only thread
  if (g_process.load(std::memory_order_relaxed) == process) return;
  g_known.store(0, std::memory_order_seq_cst);
  g_process.store(process, std::memory_order_relaxed);
}

}  // namespace

void thread_becomes_known() {
  forget_parents_threads();
  g_known.fetch_add(kChange + 1, std::memory_order_seq_cst);
}

void thread_becomes_foreign() {
  forget_parents_threads();
  g_known.fetch_add(kChange - 1, std::memory_order_seq_cst);
}

bool foreign_threads_exist() {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = g_known.load(std::memory_order_seq_cst);
    const std::int64_t all = count_threads();
    if (all <= 0) return true;
    if (g_known.load(std::memory_order_seq_cst) != before) continue;
    const std::int64_t foreign = all - static_cast<std::int32_t>(before);
    return foreign != 0 && foreign > sanitizer_threads();
  }
  return true;
}

}  // namespace tuza::rt
