// A free list of equal objects at each P, for layers above the scheduler.
//
// The objects are working sets that one goroutine after another needs for a short time. The object that was
// put back last is taken first, because its memory is in the cache of the core.
//
// Each P keeps up to kLocalMax objects. The surplus goes to a shared list of at most kSharedMax, for programs
// whose goroutines wait while they hold an object. More come from a flood only, 4,000 slow readers for example:
// their owner destroys them, or the memory of the worst minute would stay for ever. The user of the cache makes
// and destroys the objects; the cache does neither.
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
  // With objects of 8 KiB, 4 MiB.
  static constexpr std::uint32_t kSharedMax = 512;
  static constexpr std::size_t kCachesMax = 8;

  // A PerPCache must be static, because its slot is never given back. At most kCachesMax per process.
  PerPCache();
  PerPCache(const PerPCache&) = delete;
  PerPCache& operator=(const PerPCache&) = delete;

  // Null if the cache is empty: the caller then makes an object.
  CacheNode* take();
  // False: this P has enough, or the caller has none. The object still belongs to the caller.
  [[nodiscard]] bool put(CacheNode* node);
  // After put(): keeps the object for others. False: they have enough, too; the caller destroys the object.
  [[nodiscard]] bool put_surplus(CacheNode* node);

  // Moves the objects that `p` keeps, of all caches, to the shared lists, beyond kSharedMax if need be. For a P
  // that retires, or whose memory is about to be unmapped.
  static void flush(P& p);

 private:
  const std::size_t slot_;
  RawMutex mutex_;
  CacheNode* shared_ TUZA_GUARDED_BY(mutex_) = nullptr;
  std::uint32_t shared_size_ TUZA_GUARDED_BY(mutex_) = 0;
};

// The objects of one cache that a P keeps. Owner: the holder of the P.
struct CacheSlot {
  CacheNode* first = nullptr;
  std::uint32_t size = 0;
};

}  // namespace tuza::rt
