// Allocates and recycles Gs and their stacks: the slabs, the directory of all Gs, and the free lists.
//
// A goroutine gets its stack when it first runs, not when it is spawned. If a thousand goroutines are spawned
// together, and each runs to its end, they use the same warm stack one after another. If a goroutine got its
// stack at birth, each would touch a page of its own (skynet: a million pages instead of a hundred thousand,
// and 526 ns per goroutine instead of 230).
//
// A dead G keeps its stack. A bare G, which has no stack, takes one from a dead G when it needs one; the
// donor is then bare. Stacks therefore need no descriptors of their own. Each P keeps up to kLocalMax dead Gs
// of the default stack class, and as many bare Gs. The surplus goes to the global lists, in batches.
//
// Memory goes back to the kernel: sysmon trims the stacks of Gs that were unused in a global list for a whole
// second (scavenge). The number of Gs "unused for a second" is the low-water mark of the list, so a burst
// that repeats keeps its warm stacks.
//
// Thread-safe. Functions that take a P must be called by the M that holds this P.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/memory/stack_arena.h>
#include <tuza/sched/rt/queue/g_list_inline.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct P;

class GPool {
 public:
  static constexpr std::uint32_t kLocalMax = 256;

  GPool() = default;
  GPool(const GPool&) = delete;
  GPool& operator=(const GPool&) = delete;
  ~GPool();

  // Returns a dead G, bare if possible; null when the kernel gives no more memory. `p` may be null.
  G* take(P* p);
  // Returns a dead G with a stack of the class; null when the kernel gives no more memory. `p` may be null.
  G* take_with_stack(P* p, std::uint8_t stack_class, Claim claim);
  // Gives a bare G a stack of the default class; false when the kernel gives no more memory.
  bool give_stack(P& p, G& g);
  // Takes back a G that is dead and off its stack. `p` may be null.
  void put(P* p, G* g);
  // Moves the dead Gs that `p` keeps to the global lists. For a P that retires.
  void flush(P& p);

  // Gives the memory of unused stacks back to the kernel. Sysmon calls this once a second. Returns false if a
  // later call would find nothing to give back.
  bool scavenge();

  // Reserves `n` consecutive ids and returns the first. A P reserves a block at a time, so that it seldom
  // touches this shared counter.
  static constexpr std::uint64_t kIdBlock = 64;
  std::uint64_t reserve_ids(std::uint64_t n) { return next_id_.fetch_add(n, std::memory_order_relaxed); }

  // All Gs ever made, dead ones included, have the indices 0 to count() - 1. Any thread may call these.
  [[nodiscard]] std::size_t count() const { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] G& at(std::size_t index) const {
    return slabs_[index / kSlabGs].load(std::memory_order_acquire)[index % kSlabGs];
  }

  [[nodiscard]] StackArenas& stacks() { return stacks_; }

 private:
  static constexpr std::size_t kSlabGs = 4096;
  static constexpr std::size_t kSlabsMax = 4096;  // 16 million goroutines

  struct FreeList {
    RawMutex mutex;
    GList warm TUZA_GUARDED_BY(mutex);  // Gs whose stacks may hold memory
    GList cold TUZA_GUARDED_BY(mutex);  // Gs whose stacks were trimmed
    std::uint32_t warm_low_water TUZA_GUARDED_BY(mutex) =
        0;  // smallest size of `warm` since the last scavenge

    G* pop() TUZA_REQUIRES(mutex);  // null if both lists are empty
  };

  G* take_bare(P* p);
  void refill_dead(P& p);
  void refill_bare(P& p);
  void put_bare(P& p, G* g);
  bool carve_stack(G& g, std::uint8_t stack_class, Claim claim);
  G* new_g();

  std::array<FreeList, kStackClassBytes.size()> free_;
  RawMutex bare_mutex_;
  GList bare_ TUZA_GUARDED_BY(bare_mutex_);
  StackArenas stacks_;
  std::atomic<std::uint64_t> next_id_{1};

  RawMutex slab_mutex_;
  std::array<std::atomic<G*>, kSlabsMax> slabs_{};  // written under slab_mutex_
  std::atomic<std::size_t> count_{0};               // written under slab_mutex_
};

}  // namespace tuza::rt
