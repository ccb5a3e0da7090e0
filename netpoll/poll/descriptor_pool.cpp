#include <tuza/netpoll/poll/descriptor_pool.h>

#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/enter.h>

#include <array>
#include <atomic>
#include <new>

namespace tuza::net {
namespace {

constexpr std::uint32_t kSlabDescriptors = 1024;
constexpr std::uint32_t kSlabsMax = 4096;  // four million descriptors

std::array<std::atomic<Descriptor*>, kSlabsMax> g_slabs{};  // written under g_pool_mutex
rt::RawMutex g_pool_mutex;
std::atomic<std::uint32_t> g_made{0};  // written under g_pool_mutex; all below it are constructed
// Those of the system, and those in memory.
std::array<Descriptor*, 2> g_free TUZA_GUARDED_BY(g_pool_mutex){};

}  // namespace

Descriptor* DescriptorPool::take(bool in_memory) {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the mutex
  const LockGuard lock(g_pool_mutex);
  Descriptor*& first_free = g_free[in_memory ? 1 : 0];
  if (Descriptor* d = first_free; d != nullptr) {
    first_free = d->next_free_;
    return d;
  }
  const std::uint32_t index = g_made.load(std::memory_order_relaxed);
  const std::uint32_t slab = index / kSlabDescriptors;
  if (slab == kSlabsMax) return nullptr;
  if (index % kSlabDescriptors == 0) {
    auto* memory = static_cast<Descriptor*>(rt::map_pages(kSlabDescriptors * sizeof(Descriptor)));
    if (memory == nullptr) return nullptr;
    g_slabs[slab].store(memory, std::memory_order_relaxed);
  }
  Descriptor* at = &g_slabs[slab].load(std::memory_order_relaxed)[index % kSlabDescriptors];
  Descriptor* d = ::new (static_cast<void*>(at)) Descriptor(index, in_memory);
  g_made.store(index + 1, std::memory_order_release);  // pairs with at(): the descriptor is visible
  return d;
}

void DescriptorPool::put(Descriptor* descriptor) {
  const rt::Enter rt;
  const LockGuard lock(g_pool_mutex);
  Descriptor*& first_free = g_free[descriptor->in_memory() ? 1 : 0];
  descriptor->next_free_ = first_free;
  first_free = descriptor;
}

Descriptor* DescriptorPool::at(std::uint32_t index) {
  if (index >= g_made.load(std::memory_order_acquire)) return nullptr;
  return &g_slabs[index / kSlabDescriptors].load(std::memory_order_relaxed)[index % kSlabDescriptors];
}

}  // namespace tuza::net
