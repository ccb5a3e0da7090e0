// Describes a goroutine's stack: its addresses and its class. rt/memory/stack_arena.h makes stacks.
#pragma once

#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/arch/valgrind.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

// Address space per stack, guard included. A stack uses memory only where its goroutine has written.
inline constexpr std::array<std::size_t, 5> kStackClassBytes = {64u << 10, 256u << 10, 1u << 20, 8u << 20,
                                                                64u << 20};
inline constexpr std::uint8_t kNoStackClass = 0xff;
// Sanitizer builds need a larger class, because instrumented frames are larger.
inline constexpr std::uint8_t kDefaultStackClass = kAsan || kTsan ? 2 : 1;

// Returns the smallest class with at least `bytes`; kNoStackClass if none is large enough.
constexpr std::uint8_t stack_class_for(std::size_t bytes) {
  for (std::size_t c = 0; c < kStackClassBytes.size(); ++c) {
    if (kStackClassBytes[c] >= bytes) return static_cast<std::uint8_t>(c);
  }
  return kNoStackClass;
}

//   guard_low          low                                   top     guard_low + class bytes
//      |  guard pages   |  usable, grows down  <---           |  colour  |
struct Stack {
  std::uintptr_t low = 0;
  std::uintptr_t top = 0;
  std::uintptr_t guard_low = 0;
  std::uint8_t stack_class = kNoStackClass;
  bool guarded = false;
  bool dirty = false;  // may hold pages touched since the last trim
  ValgrindStack valgrind;

  [[nodiscard]] bool exists() const { return stack_class != kNoStackClass; }
  [[nodiscard]] bool guard_contains(std::uintptr_t address) const {
    return guarded && address >= guard_low && address < low;
  }
};

}  // namespace tuza::rt
