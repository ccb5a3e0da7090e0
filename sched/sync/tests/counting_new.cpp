#include <tuza/sched/sync/tests/counting_new.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace tuza::testing {
namespace {

std::atomic<std::uint64_t> count{0};

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)
void* counted(std::size_t bytes, std::size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) std::abort();
  return p;
}
#endif

}  // namespace

std::uint64_t allocations() { return count.load(std::memory_order_relaxed); }

}  // namespace tuza::testing

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)
void* operator new(std::size_t bytes) { return tuza::testing::counted(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return tuza::testing::counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return tuza::testing::counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return tuza::testing::counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif
