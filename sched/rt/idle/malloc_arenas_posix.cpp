#include <tuza/sched/rt/idle/malloc_arenas.h>

#include <atomic>
#include <cstdlib>

namespace tuza::rt {

// How threads share an allocator's memory is its own affair: each M is treated as one that may share its arena.
void allow_an_arena_per_m() {}

bool has_arena_per_m() { return false; }

std::uintptr_t take_own_arena() { return 0; }

bool can_allocate() {
  // Atomic, so that no compiler omits an allocation whose result is only freed.
  static std::atomic<void*> seen{nullptr};
  void* block = std::malloc(64);
  seen.store(block, std::memory_order_relaxed);
  std::free(block);
  return block != nullptr;
}

bool in_arena(std::uintptr_t, std::uintptr_t) { return false; }

}  // namespace tuza::rt
