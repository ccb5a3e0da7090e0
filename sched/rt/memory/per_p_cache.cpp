#include <tuza/sched/rt/memory/per_p_cache.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/p.h>

#include <array>
#include <atomic>
#include <mutex>

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
  const std::scoped_lock lock(mutex_);
  CacheNode* node = shared_;
  if (node != nullptr) shared_ = node->next;
  return node;
}

void PerPCache::put(CacheNode* node) {
  const Enter rt;
  P* p = rt.p();
  if (p == nullptr || p->caches[slot_].size == kLocalMax) {
    put_shared(node, node);
    return;
  }
  CacheSlot& local = p->caches[slot_];
  node->next = local.first;
  local.first = node;
  ++local.size;
}

void PerPCache::put_shared(CacheNode* first, CacheNode* last) {
  const std::scoped_lock lock(mutex_);
  last->next = shared_;
  shared_ = first;
}

void PerPCache::flush(P& p) {
  for (std::size_t i = 0; i < g_count.load(); ++i) {
    CacheSlot& local = p.caches[i];
    if (local.first == nullptr) continue;
    CacheNode* last = local.first;
    while (last->next != nullptr) last = last->next;
    g_caches[i].load()->put_shared(local.first, last);
    local = CacheSlot{};
  }
}

}  // namespace tuza::rt
