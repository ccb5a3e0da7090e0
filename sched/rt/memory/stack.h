// A goroutine's stack: where it lies and of which class it is. Made by rt/memory/stack_arena.h.
#pragma once

#include <tuza/sched/arch/sanitizer.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

// Address space per stack, its guard included. Memory is used only where the goroutine has written.
inline constexpr std::array<std::size_t, 4> kStackClassBytes = {64u << 10, 256u << 10, 1u << 20, 8u << 20};
inline constexpr std::uint8_t kNoStackClass = 0xff;
// Instrumented frames are larger.
inline constexpr std::uint8_t kDefaultStackClass = kAsan || kTsan ? 2 : 1;

// The smallest class with at least `bytes`; the largest class if there is none.
constexpr std::uint8_t stack_class_for(std::size_t bytes) {
  for (std::uint8_t c = 0; c + 1u < kStackClassBytes.size(); ++c) {
    if (kStackClassBytes[c] >= bytes) return c;
  }
  return static_cast<std::uint8_t>(kStackClassBytes.size() - 1);
}

//   guard_low          low                                   top     guard_low + class bytes
//      |  guard pages   |  usable, grows down  <---           |  colour  |
struct Stack {
  std::uintptr_t low = 0;
  std::uintptr_t top = 0;
  std::uintptr_t guard_low = 0;
  std::uint8_t stack_class = kNoStackClass;
  bool guarded = false;
  bool dirty = false;  // may hold touched pages since it was last trimmed

  [[nodiscard]] bool exists() const { return stack_class != kNoStackClass; }
  [[nodiscard]] bool guard_contains(std::uintptr_t address) const {
    return guarded && address >= guard_low && address < low;
  }
};

}  // namespace tuza::rt
