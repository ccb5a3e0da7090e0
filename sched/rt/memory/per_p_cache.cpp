#include <tuza/sched/rt/memory/per_p_cache.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/p.h>

#include <array>
#include <atomic>

namespace tuza::rt {
namespace {

std::atomic<std::size_t> g_count{0};
std::array<std::atomic<PerPCache*>, PerPCache::kCachesMax> g_caches{};

}  // namespace

PerPCache::PerPCache() : slot_(g_count.fetch_add(1)) {
  TUZA_CHECK(slot_ < kCachesMax);
  g_caches[slot_].store(this);
}

CacheNode* PerPCache::take() {
  const Enter rt;
  if (P* p = rt.p(); p != nullptr) {
    CacheSlot& local = p->caches[slot_];
    if (CacheNode* node = local.first; node != nullptr) {
      local.first = node->next;
      --local.size;
      return node;
    }
  }
  const LockGuard lock(mutex_);
  CacheNode* node = shared_;
  if (node == nullptr) return nullptr;
  shared_ = node->next;
  --shared_size_;
  return node;
}

bool PerPCache::put(CacheNode* node) {
  const Enter rt;
  P* p = rt.p();
  if (p == nullptr || p->caches[slot_].size == kLocalMax) return false;
  CacheSlot& local = p->caches[slot_];
  node->next = local.first;
  local.first = node;
  ++local.size;
  return true;
}

bool PerPCache::put_surplus(CacheNode* node) {
  const Enter not_suspended;
  const LockGuard lock(mutex_);
  if (shared_size_ >= kSharedMax) return false;
  node->next = shared_;
  shared_ = node;
  ++shared_size_;
  return true;
}

void PerPCache::flush(P& p) {
  for (std::size_t i = 0; i < g_count.load(); ++i) {
    CacheSlot& local = p.caches[i];
    if (local.first == nullptr) continue;
    CacheNode* last = local.first;
    while (last->next != nullptr) last = last->next;
    PerPCache& cache = *g_caches[i].load();
    const LockGuard lock(cache.mutex_);
    last->next = cache.shared_;
    cache.shared_ = local.first;
    cache.shared_size_ += local.size;
    local = CacheSlot{};
  }
}

}  // namespace tuza::rt
