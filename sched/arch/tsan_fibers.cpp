#include <tuza/sched/arch/sanitizer.h>

#if defined(TUZA_TSAN)
#include <array>
#include <cstddef>

namespace tuza::rt {
namespace {

constexpr std::size_t kFibersPerThread = 8;
// A goroutine leaves its last frames on the shadow stack, which has room for 64 Ki and no bound check.
constexpr std::uint32_t kGoroutinesPerFiber = 200;

struct Kept {
  std::array<TsanFiber, kFibersPerThread> fibers;
  std::size_t count = 0;
  ~Kept() {
    while (count > 0) __tsan_destroy_fiber(fibers[--count].fiber);
  }
};

thread_local Kept t_kept;

}  // namespace

// Both out of line: inlined, the compiler could keep the address of the thread-local across a switch.
[[gnu::noinline]] TsanFiber take_tsan_fiber() {
  if (t_kept.count == 0) return {__tsan_create_fiber(0)};
  return t_kept.fibers[--t_kept.count];
}

[[gnu::noinline]] void keep_tsan_fiber(TsanFiber fiber) {
  if (++fiber.goroutines >= kGoroutinesPerFiber || t_kept.count == kFibersPerThread) {
    __tsan_destroy_fiber(fiber.fiber);
    return;
  }
  t_kept.fibers[t_kept.count++] = fiber;
}

}  // namespace tuza::rt
#endif
