// Makes goroutine stacks: carves them from large arenas of address space, each for one stack class.
//
// A stack is carved once, and then always belongs to a G (rt/memory/g_pool.h). Nothing is ever freed, so an
// arena only counts upwards. Memory is committed by touch. Huge pages are refused: a goroutine that touches one
// page would be given 512. The kernel merges neighbouring arenas into one mapping.
//
// Where the address space of the process is limited (ulimit -v), or the kernel refuses an arena, arenas are small, down to a
// single stack: three classes would otherwise reserve 192 MiB for three stacks. An eighth of a limited address space is not
// for stacks that may be refused (Claim::kMay): a server that takes connections until there is no room for another
// stack still needs memory to serve them, and goroutines that end them.
//
// Guards: the low 16 KiB of each stack. MADV_GUARD_INSTALL (Linux 6.13) marks page table entries and needs no
// mapping of its own: a million guarded stacks cost nothing but time (0.5 us each). Older kernels get
// mprotect, which splits one mapping into two. The kernel allows a process vm.max_map_count mappings, 65,530
// by default, and other code needs mappings too: libraries, malloc, and each thread two or three. Guards may
// use half of the mappings, which is enough for the guards of 16,382 stacks. Stacks made after these have no
// guard, and the log says so once.
//
// Colours: stacks lie at multiples of 64 KiB. Unless their tops differed, the hot top line of every stack
// would fall into the same set of the L1 cache. Therefore the top of each stack is lowered by 0 to 15 lines
// of 64 bytes, in rotation.
//
// Thread-safe. Blocks the M for a few instructions, and at times for an mmap.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/memory/stack.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

// Whether a goroutine whose stack there is no room for is an error that somebody handles (try_go), or ends the process.
enum class Claim : std::uint8_t { kMay, kMust };

class StackArenas {
 public:
  StackArenas() = default;
  StackArenas(const StackArenas&) = delete;
  StackArenas& operator=(const StackArenas&) = delete;
  ~StackArenas();  // unmaps every stack

  // Returns a new stack of the class. Its exists() is false if the kernel gives no more address space, or only what is left
  // to others.
  Stack carve(std::uint8_t stack_class, Claim claim);

  // The number of stacks made so far, and their address space. Call inside the runtime.
  struct Carved {
    std::size_t stacks, bytes;
  };
  [[nodiscard]] Carved carved();

  // The frames of the goroutine that ran on `stack` are no longer needed.
  void end_frames(const Stack& stack) const {
    if (on_valgrind_) [[unlikely]]
      valgrind_forgets_frames(stack.low, stack.top);
  }
  // `stack` is never used again. Its address space stays until the destructor.
  void forget(const Stack& stack) const {
    if (on_valgrind_ && stack.exists()) stack.valgrind.ends();
  }

  // Gives the memory of `stack` back to the kernel; the next goroutine reads zeroes. The guard stays.
  static void trim(Stack& stack);

  // For tests: behaves as if MADV_GUARD_INSTALL did not exist, or as if no guard were available at all.
  enum class GuardMode : std::uint8_t { kAdvise, kProtect, kNone };
  void set_guard_mode(GuardMode mode) { guard_mode_ = mode; }
  [[nodiscard]] GuardMode guard_mode() const { return guard_mode_; }

 private:
  static constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
  static constexpr std::size_t kSmallArenaBytes = std::size_t{4} << 20;  // or one stack, if that is larger
  static_assert(kArenaBytes % kStackClassBytes.back() == 0, "an arena is carved to its end");
  static_assert(kSmallArenaBytes % kStackClassBytes[2] == 0 && kSmallArenaBytes <= kStackClassBytes[3]);
  static constexpr std::size_t kGuardBytes = std::size_t{16} << 10;
  static constexpr std::size_t kColours = 16;
  static constexpr std::size_t kColourBytes = 64;
  static constexpr std::size_t kArenasMax = 65536;  // 4 TiB of stacks

  struct ClassState {
    RawMutex mutex;
    std::uintptr_t next TUZA_GUARDED_BY(mutex) = 0;  // first byte that is not carved yet
    std::uintptr_t end TUZA_GUARDED_BY(mutex) = 0;   // end of the current arena
    std::size_t carved TUZA_GUARDED_BY(mutex) = 0;
  };

  struct Arena {
    std::uintptr_t low;
    std::size_t bytes;
  };

  bool add_arena(ClassState& state, std::size_t stack_bytes, Claim claim) TUZA_REQUIRES(state.mutex);
  bool install_guard(std::uintptr_t at);
  bool protect(void* low);

  std::array<ClassState, kStackClassBytes.size()> classes_;
  const bool on_valgrind_ = on_valgrind();
  // Only moves downwards, kAdvise to kNone. Valgrind passes on advice that it does not know, and itself dies at such a
  // guard; it knows mprotect.
  std::atomic<GuardMode> guard_mode_{on_valgrind_ ? GuardMode::kProtect : GuardMode::kAdvise};

  std::atomic<std::size_t> protected_{0};  // number of guards by mprotect

  RawMutex arenas_mutex_;
  Arena* arenas_ TUZA_GUARDED_BY(arenas_mutex_) = nullptr;  // kArenasMax slots, mapped at first use
  std::size_t arena_count_ TUZA_GUARDED_BY(arenas_mutex_) = 0;
};

}  // namespace tuza::rt
