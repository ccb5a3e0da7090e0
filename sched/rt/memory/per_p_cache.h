// A free list of equal objects at each P, for layers above the scheduler.
//
// The objects are working sets that one goroutine after another needs for a short time. The object that was
// put back last is taken first, because its memory is in the cache of the core.
//
// Each P keeps up to kLocalMax objects. The surplus goes to a shared list, and stays there for ever: objects
// that were needed once will be needed again. The user of the cache makes and destroys the objects; the cache
// does neither.
//
// Thread-safe. take() and put() touch no shared memory in the usual case; they do not park.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>

#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct P;

// The part of an object that the cache uses while the object is in the cache.
struct CacheNode {
  CacheNode* next = nullptr;
};

class PerPCache {
 public:
  static constexpr std::uint32_t kLocalMax = 64;
  static constexpr std::size_t kCachesMax = 8;

  // A PerPCache must be static, because its slot is never given back. At most kCachesMax per process.
  PerPCache();
  PerPCache(const PerPCache&) = delete;
  PerPCache& operator=(const PerPCache&) = delete;

  // Null if the cache is empty: the caller then makes an object.
  CacheNode* take();
  void put(CacheNode* node);

  // Moves the objects that `p` keeps, of all caches, to the shared lists. For a P that retires, or whose
  // memory is about to be unmapped.
  static void flush(P& p);

 private:
  void put_shared(CacheNode* first, CacheNode* last);

  const std::size_t slot_;
  RawMutex mutex_;
  CacheNode* shared_ = nullptr;  // guarded by mutex_
};

// The objects of one cache that a P keeps. Owner: the holder of the P.
struct CacheSlot {
  CacheNode* first = nullptr;
  std::uint32_t size = 0;
};

}  // namespace tuza::rt
