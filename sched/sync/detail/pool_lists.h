// Free lists of equal objects: the basis of Pool and of the blocks of Future.
//
// Each P has one object of its own, which only its holder touches: taking this object and putting it back
// costs no atomic operation. More objects go to a list beside it, under a lock; other Ps steal from this
// list when their own is empty. Threads and goroutines without a P (in the lane) share one more list.
//
// Nothing grows for ever. A put() that finds that a second has passed since the last scan drops from each
// list as many objects as the list has not needed in that second (the low-water mark; a repeated burst keeps
// the objects it needs). One object per P stays. No thread does this: a program that does not use the lists
// at all keeps the objects in them until trim().
//
// Rejected: rt::PerPCache, which has slots for eight static caches, does not steal, and never shrinks; and
// Go's victim lists, which need a regular visitor, in Go the garbage collector.
//
// Thread-safe; put() and trim() call `destroy` for the objects they drop, with no lock held. Does not park.
#pragma once

#include <tuza/sched/detail/spin_lock.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// The head of an object while it is in a list.
struct PoolNode {
  PoolNode* next = nullptr;
};

class PoolLists {
 public:
  using Destroy = void (*)(PoolNode* node);
  constexpr explicit PoolLists(Destroy destroy) : destroy_(destroy) {}
  PoolLists(const PoolLists&) = delete;
  PoolLists& operator=(const PoolLists&) = delete;
  // Destroys the objects in the lists. The lists must no longer be in use.
  ~PoolLists();

  // Null when all lists are empty: the caller makes an object.
  [[nodiscard]] PoolNode* take();
  void put(PoolNode* node);
  // Drops the objects in the lists, except one per P.
  void trim();

  // Objects taken and not yet put back. Exact when no other thread uses the lists.
  [[nodiscard]] std::int64_t in_use() const;
  // Reports that the caller of take() could not make an object.
  void not_taken();

 private:
  struct alignas(64) Local {
    // -- Owner: the holder of the P.
    PoolNode* mine = nullptr;
    // -- Written by the holder; in the list for callers without a P, by one atomic step.
    std::atomic<std::uint32_t> puts{0};
    std::atomic<std::int64_t> in_use{0};
    // -- Stealable.
    SpinLock lock;
    std::atomic<std::uint32_t> size{0};  // written under lock; read without it to skip an empty list
    std::uint32_t low_water TUZA_GUARDED_BY(lock) = 0;  // least size since the last scan
    PoolNode* first TUZA_GUARDED_BY(lock) = nullptr;

    PoolNode* pop();
    bool push(PoolNode* node);
  };
  struct Locals;

  static constexpr std::uint32_t kPutsPerScan = 256;  // a power of two
  static constexpr std::int64_t kScanIntervalNs = 1'000'000'000;

  inline Locals& locals();
  [[gnu::cold]] Locals& make_locals();
  static bool put_at(Locals& all, std::int32_t id, PoolNode* node);
  PoolNode* steal(Locals& all, std::int32_t not_from);
  void drop(Local& local, std::uint32_t count);
  void scan();

  const Destroy destroy_;
  std::atomic<Locals*> locals_{nullptr};  // made by the first user
  std::atomic<std::int64_t> scanned_ns_{0};
};

}  // namespace tuza::rt
