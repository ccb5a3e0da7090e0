#include <tuza/sched/rt/idle/malloc_arenas.h>

#include <malloc.h>
#include <sys/resource.h>
#include <tuza/sched/rt/sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tuza::rt {
namespace {

// glibc's initial threshold for blocks with pages of their own. The threshold follows the largest such block
// that was freed, and glibc keeps up to twice the threshold free at the end of an arena: 264 KiB.
constexpr std::size_t kMappedBytes = 128 << 10;
// The rest is for the program's own threads.
constexpr int kArenasMax = static_cast<int>(Sched::kMaxMs) + 1024;

// On 64-bit machines every arena but the first lies at the beginning of a heap, at a multiple of this size.
constexpr std::uintptr_t kHeapBytes = 64 << 20;
constexpr int kGlibcArenasPerCore = 8;  // its default limit

std::atomic<bool> g_one_for_each{false};

bool user_has_a_limit() {
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  return std::getenv("MALLOC_ARENA_MAX") != nullptr ||
         (tunables != nullptr && std::string_view(tunables).contains("malloc.arena_"));
}

// How many arenas get along with a limit of the address space (RLIMIT_AS): a quarter of it is theirs, the rest is for
// stacks. 0: there is no limit.
int arenas_that_fit() {
  struct rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  return static_cast<int>(std::clamp<std::uint64_t>(limit.rlim_cur / 4 / kHeapBytes, 1, kArenasMax));
}

// Returns the block's address, or 0 if there is no memory.
std::uintptr_t allocate_and_free(std::size_t bytes) {
  void* block = std::malloc(bytes);
  // A compiler may omit a malloc whose result is only freed.
  if (malloc_usable_size(block) > 0) std::free(block);
  return reinterpret_cast<std::uintptr_t>(block);
}

}  // namespace

void allow_an_arena_per_m() {
#ifdef M_ARENA_MAX
  if (user_has_a_limit()) return;
  if (const int fitting = arenas_that_fit(); fitting != 0) {
    mallopt(M_ARENA_MAX,
            std::min(fitting, kGlibcArenasPerCore * static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))));
    return;
  }
  if (mallopt(M_ARENA_MAX, kArenasMax) != 1) return;
  g_one_for_each.store(true);
  // The first blocks may come from memory that the program has freed already.
  std::array<void*, 8> blocks{};
  const std::size_t before = mallinfo2().hblks;
  for (void*& block : blocks) {
    block = std::malloc(kMappedBytes);
    if (mallinfo2().hblks != before) break;
  }
  for (void* block : blocks) std::free(block);
#endif
}

bool has_arena_per_m() { return g_one_for_each.load(std::memory_order_relaxed); }

std::uintptr_t take_own_arena() { return has_arena_per_m() ? allocate_and_free(1) & ~(kHeapBytes - 1) : 0; }

bool can_allocate() { return allocate_and_free(64) != 0; }

bool in_arena(std::uintptr_t address, std::uintptr_t arena) {
  return arena != 0 && (address & ~(kHeapBytes - 1)) == arena;
}

}  // namespace tuza::rt
