// Free lists of equal objects: what Pool and the blocks of Future are made of.
//
// Each P has one object of its own, which only its holder touches: taking one and putting it back costs no
// atomic operation. More go to a list beside it, under a lock, from which the other Ps steal when they have
// nothing. Those without a P (threads, goroutines in the lane) share one more list.
//
// Nothing grows for ever: a put() that finds that a second has passed since the last time drops from each
// list as many objects as it has not needed in that second (the low-water mark; a burst that repeats keeps
// what it needs). One object at each P stays. There is no thread for that: a program that does not use the
// lists at all keeps what is in them, until trim().
//
// Rejected: rt::PerPCache, which has slots for eight static caches, does not steal, and never shrinks; Go's
// victim lists, which need somebody who comes by regularly, the collector there.
//
// Thread-safe; put() and trim() call `destroy` for what they drop, with no lock held. Does not park.
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
  // Destroys what is in them. Nobody uses them any more.
  ~PoolLists();

  // Null when there is none anywhere: the caller makes one.
  [[nodiscard]] PoolNode* take();
  void put(PoolNode* node);
  // Drops what is in the lists, but for one object at each P.
  void trim();

  // Taken and not yet put back. Exact when nobody is at it.
  [[nodiscard]] std::int64_t in_use() const;
  // The caller of take() could not make one.
  void not_taken();

 private:
  struct alignas(64) Local {
    // -- Owner: the holder of the P.
    PoolNode* mine = nullptr;
    // -- Written by the holder; for those without a P by one atomic step.
    std::atomic<std::uint32_t> puts{0};
    std::atomic<std::int64_t> in_use{0};
    // -- Stealable.
    SpinLock lock;
    std::atomic<std::uint32_t> size{0};  // written under lock; read without it to pass by an empty list
    std::uint32_t low_water = 0;         // guarded by lock: least size since the last look
    PoolNode* first = nullptr;           // guarded by lock

    PoolNode* pop();
    bool push(PoolNode* node);
  };
  struct Locals;

  static constexpr std::uint32_t kPutsPerLook = 256;  // a power of two
  static constexpr std::int64_t kLookNs = 1'000'000'000;

  inline Locals& locals();
  [[gnu::cold]] Locals& make_locals();
  static bool put_at(Locals& all, std::int32_t id, PoolNode* node);
  PoolNode* steal(Locals& all, std::int32_t not_from);
  void drop(Local& local, std::uint32_t count);
  void look();

  const Destroy destroy_;
  std::atomic<Locals*> locals_{nullptr};  // made by the first user
  std::atomic<std::int64_t> looked_ns_{0};
};

}  // namespace tuza::rt
