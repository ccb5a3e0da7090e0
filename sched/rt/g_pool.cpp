#include <tuza/sched/rt/g_pool.h>

#include <tuza/sched/rt/mapping.h>
#include <tuza/sched/rt/p.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace tuza::rt {
namespace {

constexpr std::uint32_t kBatch = GPool::kLocalMax / 2;

}  // namespace

GPool::~GPool() {
  for (std::size_t i = 0, n = count(); i < n; ++i) at(i).sanitizer.goroutine_ended();
  for (auto& slab : slabs_) unmap_pages(slab.load(), kSlabGs * sizeof(G));
}

G* GPool::new_g() {
  const std::scoped_lock lock(slab_mutex_);
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

G* GPool::make(std::uint8_t stack_class) {
  const Stack stack = stacks_.carve(stack_class);
  if (!stack.exists()) return nullptr;
  G* g = new_g();
  if (g != nullptr) g->stack = stack;
  return g;
}

G* GPool::take_global(std::uint8_t stack_class) {
  FreeList& free = free_[stack_class];
  const std::scoped_lock lock(free.mutex);
  G* g = free.warm.pop_front();
  free.warm_low_water = std::min(free.warm_low_water, free.warm.size());
  return g != nullptr ? g : free.cold.pop_front();
}

void GPool::refill(P& p) {
  FreeList& free = free_[kDefaultStackClass];
  const std::scoped_lock lock(free.mutex);
  while (p.free_gs.size() < kBatch) {
    G* g = free.warm.pop_front();
    if (g == nullptr) g = free.cold.pop_front();
    if (g == nullptr) break;
    p.free_gs.push_back(g);
  }
  free.warm_low_water = std::min(free.warm_low_water, free.warm.size());
}

G* GPool::take(P* p, std::uint8_t stack_class) {
  G* g = nullptr;
  if (p != nullptr && stack_class == kDefaultStackClass) {
    if (p->free_gs.empty()) refill(*p);
    g = p->free_gs.pop_front();
  } else {
    g = take_global(stack_class);
  }
  return g != nullptr ? g : make(stack_class);
}

void GPool::put(P* p, G* g) {
  g->stack.dirty = true;
  const bool local = p != nullptr && g->stack.stack_class == kDefaultStackClass;
  if (local) {
    p->free_gs.push_front(g);
    if (p->free_gs.size() <= kLocalMax) return;
  }
  FreeList& free = free_[g->stack.stack_class];
  const std::scoped_lock lock(free.mutex);
  if (!local) {
    free.warm.push_front(g);
    return;
  }
  for (std::uint32_t i = 0; i < kBatch; ++i) free.warm.push_front(p->free_gs.pop_front());
}

void GPool::flush(P& p) {
  FreeList& free = free_[kDefaultStackClass];
  const std::scoped_lock lock(free.mutex);
  free.warm.splice_back(std::move(p.free_gs));
}

bool GPool::scavenge() {
  constexpr std::uint32_t kAtOnce = 32;        // Gs out of the list at a time
  constexpr std::uint32_t kPerCall = 16 * 1024;  // bounds the time sysmon is away: about 10 ms
  bool more = false;
  for (FreeList& free : free_) {
    std::uint32_t unused = 0;
    {
      const std::scoped_lock lock(free.mutex);
      unused = std::min(free.warm_low_water, kPerCall);
      free.warm_low_water = free.warm.size();
    }
    while (unused > 0) {
      GList batch;
      {
        const std::scoped_lock lock(free.mutex);
        while (unused > 0 && batch.size() < kAtOnce && !free.warm.empty()) {
          batch.push_back(free.warm.pop_front());
          --unused;
        }
        free.warm_low_water = std::min(free.warm_low_water, free.warm.size());
      }
      if (batch.empty()) break;
      for (G* g = batch.front(); g != nullptr; g = g->link) StackArenas::trim(g->stack);
      const std::scoped_lock lock(free.mutex);
      free.cold.splice_back(std::move(batch));
    }
    const std::scoped_lock lock(free.mutex);
    more = more || !free.warm.empty();
  }
  return more;
}

}  // namespace tuza::rt
