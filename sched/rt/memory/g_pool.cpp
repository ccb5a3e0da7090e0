#include <tuza/sched/rt/memory/g_pool.h>

#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/p.h>

#include <algorithm>
#include <new>
#include <utility>

namespace tuza::rt {
namespace {

constexpr std::uint32_t kBatch = GPool::kLocalMax / 2;

}  // namespace

GPool::~GPool() {
  for (std::size_t i = 0, n = count(); i < n; ++i) {
    at(i).sanitizer.g_ends();
    stacks_.forget(at(i).stack);
  }
  for (auto& slab : slabs_) unmap_pages(slab.load(), kSlabGs * sizeof(G));
}

G* GPool::new_g() {
  const LockGuard lock(slab_mutex_);
  const std::size_t index = count_.load(std::memory_order_relaxed);
  const std::size_t slab = index / kSlabGs;
  if (index % kSlabGs == 0) {
    auto* memory = slab < kSlabsMax ? static_cast<G*>(map_pages(kSlabGs * sizeof(G))) : nullptr;
    if (memory == nullptr) return nullptr;
    slabs_[slab].store(memory, std::memory_order_release);
  }
  G* g = ::new (static_cast<void*>(&slabs_[slab].load(std::memory_order_relaxed)[index % kSlabGs])) G;
  count_.store(index + 1, std::memory_order_release);
  return g;
}

G* GPool::FreeList::pop() {
  G* g = warm.pop_front();
  warm_low_water = std::min(warm_low_water, warm.size());
  return g != nullptr ? g : cold.pop_front();
}

void GPool::refill_dead(P& p) {
  FreeList& free = free_[kDefaultStackClass];
  const LockGuard lock(free.mutex);
  while (p.dead_gs.size() < kBatch) {
    G* g = free.pop();
    if (g == nullptr) return;
    p.dead_gs.push_back(g);
  }
}

void GPool::refill_bare(P& p) {
  const LockGuard lock(bare_mutex_);
  while (p.bare_gs.size() < kBatch && !bare_.empty()) p.bare_gs.push_back(bare_.pop_front());
}

bool GPool::carve_stack(G& g, std::uint8_t stack_class, Claim claim) {
  g.stack = stacks_.carve(stack_class, claim);
  return g.stack.exists();
}

G* GPool::take_bare(P* p) {
  if (p != nullptr) {
    if (p->bare_gs.empty()) refill_bare(*p);
    return p->bare_gs.pop_front();
  }
  const LockGuard lock(bare_mutex_);
  return bare_.pop_front();
}

G* GPool::take(P* p) {
  G* g = take_bare(p);
  if (g == nullptr && p != nullptr) g = p->dead_gs.pop_front();
  return g != nullptr ? g : new_g();
}

G* GPool::take_with_stack(P* p, std::uint8_t stack_class, Claim claim) {
  G* g = nullptr;
  if (p != nullptr && stack_class == kDefaultStackClass) {
    if (p->dead_gs.empty()) refill_dead(*p);
    g = p->dead_gs.pop_front();
  } else {
    FreeList& free = free_[stack_class];
    const LockGuard lock(free.mutex);
    g = free.pop();
  }
  if (g != nullptr) return g;
  g = take_bare(p);
  if (g == nullptr) g = new_g();
  if (g == nullptr || carve_stack(*g, stack_class, claim)) return g;
  put(p, g);
  return nullptr;
}

bool GPool::give_stack(P& p, G& g) {
  if (p.dead_gs.empty()) refill_dead(p);
  G* donor = p.dead_gs.pop_front();
  if (donor == nullptr) return carve_stack(g, kDefaultStackClass, Claim::kMust);
  g.stack = std::exchange(donor->stack, Stack{});
  put_bare(p, donor);
  return true;
}

void GPool::put_bare(P& p, G* g) {
  p.bare_gs.push_front(g);
  if (p.bare_gs.size() <= kLocalMax) return;
  const LockGuard lock(bare_mutex_);
  for (std::uint32_t i = 0; i < kBatch; ++i) bare_.push_front(p.bare_gs.pop_front());
}

void GPool::put(P* p, G* g) {
  if (!g->stack.exists()) {
    if (p != nullptr) return put_bare(*p, g);
    const LockGuard lock(bare_mutex_);
    return bare_.push_front(g);
  }
  g->stack.dirty = true;
  stacks_.end_frames(g->stack);
  FreeList& free = free_[g->stack.stack_class];
  if (p == nullptr || g->stack.stack_class != kDefaultStackClass) {
    const LockGuard lock(free.mutex);
    return free.warm.push_front(g);
  }
  p->dead_gs.push_front(g);
  if (p->dead_gs.size() <= kLocalMax) return;
  const LockGuard lock(free.mutex);
  for (std::uint32_t i = 0; i < kBatch; ++i) free.warm.push_front(p->dead_gs.pop_front());
}

void GPool::flush(P& p) {
  {
    FreeList& free = free_[kDefaultStackClass];
    const LockGuard lock(free.mutex);
    free.warm.splice_back(std::move(p.dead_gs));
  }
  const LockGuard lock(bare_mutex_);
  bare_.splice_back(std::move(p.bare_gs));
}

bool GPool::scavenge() {
  constexpr std::uint32_t kAtOnce = 32;          // Gs that are off the list at a time
  constexpr std::uint32_t kPerCall = 16 * 1024;  // bounds the time of one call by sysmon: about 10 ms
  bool more = false;
  for (FreeList& free : free_) {
    std::uint32_t unused = 0;
    {
      const LockGuard lock(free.mutex);
      unused = std::min(free.warm_low_water, kPerCall);
      free.warm_low_water = free.warm.size();
    }
    while (unused > 0) {
      GList batch;
      {
        const LockGuard lock(free.mutex);
        while (unused > 0 && batch.size() < kAtOnce && !free.warm.empty()) {
          batch.push_back(free.warm.pop_front());
          --unused;
        }
        free.warm_low_water = std::min(free.warm_low_water, free.warm.size());
      }
      if (batch.empty()) break;
      for (G* g = batch.front(); g != nullptr; g = g->link) StackArenas::trim(g->stack);
      const LockGuard lock(free.mutex);
      free.cold.splice_back(std::move(batch));
    }
    const LockGuard lock(free.mutex);
    more = more || !free.warm.empty();
  }
  return more;
}

}  // namespace tuza::rt
