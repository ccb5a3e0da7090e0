// A free list of equal objects at each P, for layers above the scheduler: working sets that are taken for a
// moment, by one goroutine after another. The one that was put back last is taken first: its memory is in the
// cache of the core.
//
// Each P keeps up to kLocalMax; more go to a shared list, and stay there for ever: what was needed once will
// be needed again. Objects are made and destroyed by the user of the cache, never here.
//
// Thread-safe. take() and put() touch no shared memory in the usual case; they do not park.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>

#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct P;

// The part of an object that the cache uses while it holds it.
struct CacheNode {
  CacheNode* next = nullptr;
};

class PerPCache {
 public:
  static constexpr std::uint32_t kLocalMax = 64;
  static constexpr std::size_t kCachesMax = 8;

  // Static objects only: the slot is never given back. At most kCachesMax in a process.
  PerPCache();
  PerPCache(const PerPCache&) = delete;
  PerPCache& operator=(const PerPCache&) = delete;

  // Null when there is none: the caller makes one.
  CacheNode* take();
  void put(CacheNode* node);

  // Moves what `p` has, of all caches, to the shared lists: its memory is about to go.
  static void flush(P& p);

 private:
  void put_shared(CacheNode* first, CacheNode* last);

  const std::size_t slot_;
  RawMutex mutex_;
  CacheNode* shared_ = nullptr;  // guarded by mutex_
};

// What a P has of one cache. Owner: the holder of the P.
struct CacheSlot {
  CacheNode* first = nullptr;
  std::uint32_t size = 0;
};

}  // namespace tuza::rt
