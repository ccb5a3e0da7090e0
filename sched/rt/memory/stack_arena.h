// Where stacks come from: large arenas of address space, one stack class each.
//
// A stack is carved once and then belongs to its G for ever (rt/memory/g_pool.h), so there is nothing to free:
// an arena only counts up. Memory is committed by touch; huge pages are refused, because a goroutine
// touches one page and would be given 512. Neighbouring arenas merge into one mapping of the kernel.
//
// Guards: the low 16 KiB of each stack. MADV_GUARD_INSTALL (Linux 6.13) marks page table entries and needs
// no mapping of its own: a million guarded stacks cost nothing but time (0.5 us each). Older kernels get
// mprotect, which makes two mappings out of one. The kernel allows a process vm.max_map_count of them, 65,530, and
// everybody else needs some, too: libraries, malloc, each thread two or three. Half of them may go to guards, those of
// 16,382 stacks; the stacks after these have none, and the log says so once.
//
// Colours: stacks lie at multiples of 64 KiB, so without care the hot top line of every stack would fall
// into the same set of the L1 cache. The top is lowered by 0 to 15 lines of 64 bytes in turn.
//
// Thread-safe. Blocks the M for a few instructions, at times for a mmap.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/memory/stack.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

class StackArenas {
 public:
  StackArenas() = default;
  StackArenas(const StackArenas&) = delete;
  StackArenas& operator=(const StackArenas&) = delete;
  ~StackArenas();  // unmaps every stack

  // A new stack of the class. stack.exists() is false when the kernel gives no more address space.
  Stack carve(std::uint8_t stack_class);

  // Stacks made so far, and their address space. Inside the runtime.
  struct Carved {
    std::size_t stacks, bytes;
  };
  [[nodiscard]] Carved carved();

  // Gives the memory behind `stack` back to the kernel; the next goroutine finds zeroes. Guards stay.
  static void trim(Stack& stack);

  // For tests: pretend that MADV_GUARD_INSTALL does not exist, or that no guard can be had at all.
  enum class GuardMode : std::uint8_t { kAdvise, kProtect, kNone };
  void set_guard_mode(GuardMode mode) { guard_mode_ = mode; }
  [[nodiscard]] GuardMode guard_mode() const { return guard_mode_; }

 private:
  static constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
  static constexpr std::size_t kGuardBytes = std::size_t{16} << 10;
  static constexpr std::size_t kColours = 16;
  static constexpr std::size_t kColourBytes = 64;
  static constexpr std::size_t kArenasMax = 65536;  // 4 TiB of stacks

  struct ClassState {
    RawMutex mutex;
    std::uintptr_t next = 0;  // guarded by mutex: first byte not carved yet
    std::uintptr_t end = 0;   // guarded by mutex: end of the current arena
    std::size_t carved = 0;   // guarded by mutex
  };

  bool add_arena(ClassState& state);
  bool install_guard(std::uintptr_t at);
  bool protect(void* low);

  std::array<ClassState, kStackClassBytes.size()> classes_;
  std::atomic<GuardMode> guard_mode_{GuardMode::kAdvise};  // only ever moves down
  std::atomic<bool> advice_proven_{false};                 // relaxed: who misses it proves it once more

  std::atomic<std::size_t> protected_{0};  // guards by mprotect

  RawMutex arenas_mutex_;
  std::uintptr_t* arenas_ = nullptr;  // guarded by arenas_mutex_; kArenasMax slots, mapped at first use
  std::size_t arena_count_ = 0;       // guarded by arenas_mutex_
};

}  // namespace tuza::rt
