#include <tuza/sched/sync/detail/pool_lists.h>

#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle_mask.h>
#include <tuza/sched/rt/p.h>

#include <algorithm>
#include <array>

namespace tuza::rt {
namespace {

constexpr std::int32_t kNoP = kMaxProcsLimit;  // the list of threads and goroutines without a P

}  // namespace

struct PoolLists::Locals {
  std::atomic<std::int32_t> used{0};  // Ps with an id of `used` or more have never used their list
  std::array<Local, kMaxProcsLimit + 1> at;

  Local& of(std::int32_t id) { return at[static_cast<std::size_t>(id)]; }
};

inline PoolLists::Locals& PoolLists::locals() {
  Locals* const all = locals_.load(std::memory_order_acquire);
  return all != nullptr ? *all : make_locals();
}

PoolNode* PoolLists::Local::pop() {
  if (size.load(std::memory_order_relaxed) == 0) return nullptr;
  const LockGuard held(lock);
  PoolNode* const node = first;
  if (node == nullptr) return nullptr;
  first = node->next;
  const std::uint32_t left = size.load(std::memory_order_relaxed) - 1;
  size.store(left, std::memory_order_relaxed);
  low_water = std::min(low_water, left);
  return node;
}

// True if the list was empty.
bool PoolLists::Local::push(PoolNode* node) {
  const LockGuard held(lock);
  node->next = first;
  first = node;
  const std::uint32_t before = size.load(std::memory_order_relaxed);
  size.store(before + 1, std::memory_order_relaxed);
  return before == 0;
}

PoolLists::~PoolLists() {
  Locals* const all = locals_.load(std::memory_order_acquire);
  if (all == nullptr) return;
  for (Local& local : all->at) {
    if (local.mine != nullptr) destroy_(local.mine);
    drop(local, local.size.load(std::memory_order_relaxed));
  }
  delete all;
}

// Not inside the runtime: allocates.
PoolLists::Locals& PoolLists::make_locals() {
  auto* made = new Locals;
  Locals* seen = nullptr;
  if (locals_.compare_exchange_strong(seen, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *seen;
}

PoolNode* PoolLists::take() {
  Locals& all = locals();
  const Enter rt;
  const P* const p = rt.p();
  if (p == nullptr) {
    Local& shared = all.of(kNoP);
    shared.in_use.fetch_add(1, std::memory_order_relaxed);
    PoolNode* const node = shared.pop();
    return node != nullptr ? node : steal(all, kNoP);
  }
  Local& local = all.of(p->id);
  local.in_use.store(local.in_use.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (PoolNode* const node = local.mine; node != nullptr) {
    local.mine = nullptr;
    return node;
  }
  PoolNode* const node = local.pop();
  return node != nullptr ? node : steal(all, p->id);
}

PoolNode* PoolLists::steal(Locals& all, std::int32_t not_from) {
  for (std::int32_t id = 0, n = all.used.load(std::memory_order_relaxed); id < n; ++id) {
    if (id == not_from) continue;
    if (PoolNode* const node = all.of(id).pop(); node != nullptr) return node;
  }
  return not_from == kNoP ? nullptr : all.of(kNoP).pop();
}

// Called by the holder of the P. True: it is time to check for surplus objects.
inline bool PoolLists::put_at(Locals& all, std::int32_t id, PoolNode* node) {
  Local& local = all.of(id);
  local.in_use.store(local.in_use.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  const std::uint32_t puts = local.puts.load(std::memory_order_relaxed) + 1;
  local.puts.store(puts, std::memory_order_relaxed);
  if (local.mine == nullptr) {
    local.mine = node;
  } else if (local.push(node)) {
    std::int32_t used = all.used.load(std::memory_order_relaxed);
    while (used <= id && !all.used.compare_exchange_weak(used, id + 1, std::memory_order_relaxed)) {
    }
  }
  return (puts & (kPutsPerScan - 1)) == 0;
}

void PoolLists::put(PoolNode* node) {
  Locals& all = locals();
  bool scan_now = false;
  {
    const Enter rt;
    const P* const p = rt.p();
    if (p == nullptr) {
      Local& shared = all.of(kNoP);
      shared.in_use.fetch_sub(1, std::memory_order_relaxed);
      shared.push(node);
      scan_now = (shared.puts.fetch_add(1, std::memory_order_relaxed) & (kPutsPerScan - 1)) == 0;
    } else {
      scan_now = put_at(all, p->id, node);
    }
  }
  if (scan_now) scan();
}

void PoolLists::scan() {
  const std::int64_t now = coarse_now_ns();
  std::int64_t scanned = scanned_ns_.load(std::memory_order_relaxed);
  if (now - scanned < kScanIntervalNs) return;
  if (!scanned_ns_.compare_exchange_strong(scanned, now, std::memory_order_relaxed)) return;
  for (Local& local : locals().at) {
    if (local.size.load(std::memory_order_relaxed) == 0) continue;
    std::uint32_t unused = 0;
    {
      const Enter rt;
      const LockGuard held(local.lock);
      unused = local.low_water;
    }
    drop(local, unused);
    const Enter rt;
    const LockGuard held(local.lock);
    local.low_water = local.size.load(std::memory_order_relaxed);
  }
}

void PoolLists::trim() {
  for (Local& local : locals().at) drop(local, local.size.load(std::memory_order_relaxed));
}

// One at a time: the destructor is the user's code.
void PoolLists::drop(Local& local, std::uint32_t count) {
  for (; count > 0; --count) {
    PoolNode* node = nullptr;
    {
      const Enter rt;
      node = local.pop();
    }
    if (node == nullptr) return;
    destroy_(node);
  }
}

void PoolLists::not_taken() {
  // Charged to the shared list, wherever the take was counted: only the sum matters.
  locals().of(kNoP).in_use.fetch_sub(1, std::memory_order_relaxed);
}

std::int64_t PoolLists::in_use() const {
  const Locals* const all = locals_.load(std::memory_order_acquire);
  std::int64_t sum = 0;
  if (all != nullptr) {
    for (const Local& local : all->at) sum += local.in_use.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace tuza::rt
