#include <tuza/netpoll/tests/failing_new.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace tuza::testing {
namespace {

std::atomic<int> successes_left{-1};

void* allocate(std::size_t bytes) {
  if (successes_left.load(std::memory_order_relaxed) >= 0 &&
      successes_left.fetch_sub(1, std::memory_order_relaxed) <= 0) {
    successes_left = 0;
    throw std::bad_alloc();
  }
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void fail_allocations_after(int successes) { successes_left = successes; }

}  // namespace tuza::testing

void* operator new(std::size_t bytes) { return tuza::testing::allocate(bytes); }
void* operator new[](std::size_t bytes) { return tuza::testing::allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
