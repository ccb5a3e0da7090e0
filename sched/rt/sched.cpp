#include <tuza/sched/rt/sched.h>

#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/clock.h>

#include <utility>

namespace tuza::rt {

// The gdb script finds the runtime here; threads that are not Ms call active().
extern "C" {
std::atomic<Sched*> tuza_sched{nullptr};
}

namespace {

// The number of threads inside an ExternalEntry. Not in Sched, because it is used when there is none.
std::atomic<std::uint32_t> g_external{0};

}  // namespace

Sched* active() { return tuza_sched.load(std::memory_order_acquire); }

void wait_for_external_entries(std::int64_t deadline_ns) {
  while (g_external.load(std::memory_order_seq_cst) != 0 && now_ns() < deadline_ns) {
    sys::sched_yield();
  }
}

ExternalEntry::ExternalEntry(const M* m) {
  if (m != nullptr) {
    sched_ = m->sched;
    return;
  }
  // seq_cst, against end_runtime(): either that sees this thread in the count, or this thread sees no runtime.
  g_external.fetch_add(1, std::memory_order_seq_cst);
  sched_ = tuza_sched.load(std::memory_order_seq_cst);
  counted_ = sched_ != nullptr;
  // Threads that keep calling without a runtime must not delay its end.
  if (!counted_) g_external.fetch_sub(1, std::memory_order_release);
}

ExternalEntry::ExternalEntry(Adopt) : sched_(tuza_sched.load(std::memory_order_seq_cst)), counted_(true) {}

bool ExternalEntry::detach() { return std::exchange(counted_, false); }

ExternalEntry::~ExternalEntry() {
  if (counted_) g_external.fetch_sub(1, std::memory_order_release);
}

void Sched::io_waits_ended(P* p, std::int64_t n) {
  if (n == 0) return;
  if (p != nullptr) {
    p->io_waits += -n;
  } else {
    io_waits_outside.fetch_sub(n, std::memory_order_relaxed);
  }
}

bool Sched::has_io_waiters() const {
  std::int64_t waits = io_waits_outside.load(std::memory_order_relaxed);
  for (std::int32_t i = 0, n = procs_made.load(std::memory_order_acquire); i < n; ++i)
    waits += ps[i].io_waits;
  return waits > 0;
}

std::int64_t Sched::next_timer_ns(std::memory_order order) const {
  std::int64_t next = TimerHeap::kNever;
  for (std::int32_t i = 0, n = procs_made.load(std::memory_order_acquire); i < n; ++i) {
    const std::int64_t when = ps[i].timers.next_ns(order);
    if (when < next) next = when;
  }
  return next;
}

}  // namespace tuza::rt
