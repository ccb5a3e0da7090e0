// Small memory blocks for objects that are made and dropped all the time, often on another processor than
// the one that made them: the states of futures, the nodes of contexts. Blocks are recycled
// (sync/detail/pool_lists.h), so that a steady state allocates nothing; larger blocks come from operator
// new.
//
//     struct State : rt::FromBlockPool { ... };        // new State, delete state
//
// Thread-safe. Does not park. ASan builds use operator new, so that ASan detects uses after the end.
#pragma once

#include <cstddef>
#include <new>

namespace tuza::rt {

[[nodiscard]] void* take_block(std::size_t bytes);
void give_block(void* block, std::size_t bytes) noexcept;

struct FromBlockPool {
  static void* operator new(std::size_t bytes) { return take_block(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { give_block(block, bytes); }
  // For types with a greater alignment than the blocks have.
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* block, std::size_t, std::align_val_t alignment) noexcept {
    ::operator delete(block, alignment);
  }
};

}  // namespace tuza::rt
