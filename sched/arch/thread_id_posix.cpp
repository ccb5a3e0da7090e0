#include <tuza/sched/arch/thread_id.h>

#include <atomic>

namespace tuza {
namespace {

std::atomic<std::int32_t> g_last{0};
thread_local std::int32_t t_own = 0;

}  // namespace

// Not inlined, as there is no interprocedural optimisation: the address of t_own is never kept across a switch.
std::int32_t own_thread_id() {
  if (t_own == 0)
    t_own = g_last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: only uniqueness counts
  return t_own;
}

}  // namespace tuza
