#include <tuza/sched/sync/detail/block_pool.h>

#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/sync/detail/pool_lists.h>

#include <array>

namespace tuza::rt {
namespace {

// 64, 128, ... 512 bytes.
constexpr std::size_t kStep = 64;
constexpr std::size_t kClasses = 8;

constexpr auto kFree = [](PoolNode* node) { ::operator delete(node); };

// Never freed: goroutines that the runtime has abandoned may still return.
union Blocks {
  constexpr Blocks()
      : lists{PoolLists(kFree), PoolLists(kFree), PoolLists(kFree), PoolLists(kFree),
              PoolLists(kFree), PoolLists(kFree), PoolLists(kFree), PoolLists(kFree)} {}
  ~Blocks() {}  // NOLINT: never destroyed
  std::array<PoolLists, kClasses> lists;
};
constinit Blocks g_blocks;

PoolLists& lists(std::size_t index) { return g_blocks.lists[index]; }

constexpr std::size_t class_of(std::size_t bytes) { return (bytes - 1) / kStep; }

}  // namespace

void* take_block(std::size_t bytes) {
  if (kAsan || class_of(bytes) >= kClasses) return ::operator new(bytes);
  PoolLists& blocks = lists(class_of(bytes));
  if (PoolNode* const node = blocks.take(); node != nullptr) return node;
  return ::operator new((class_of(bytes) + 1) * kStep);
}

void give_block(void* block, std::size_t bytes) noexcept {
  if (kAsan || class_of(bytes) >= kClasses) {
    ::operator delete(block);
  } else {
    lists(class_of(bytes)).put(::new (block) PoolNode);
  }
}

}  // namespace tuza::rt
