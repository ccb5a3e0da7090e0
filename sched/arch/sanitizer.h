// Tells AddressSanitizer and ThreadSanitizer about stack switches.
//
// Both treat stacks as a property of threads. ASan must learn the bounds of the stack that is switched to (or
// it would report every access there as wild), and keeps a "fake stack" per context. TSan keeps the clock and
// the shadow stack of each context in a "fiber". In builds without a sanitizer everything here is empty and
// inlines away, so that the switch that is tested is the switch that ships.
//
// TSan is told that a switch synchronises (flag 0): a switch really does order goroutines that share a
// thread, and the runtime's per-M fields rely on that.
#pragma once

#include <tuza/sched/arch/tsan_fibers.h>
#include <tuza/sched/detail/sanitizers.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(TUZA_ASAN)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#elif defined(TUZA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace tuza::rt {

#if defined(TUZA_ASAN)
inline constexpr bool kAsan = true;
#else
inline constexpr bool kAsan = false;
#endif
#if defined(TUZA_TSAN)
inline constexpr bool kTsan = true;
#else
inline constexpr bool kTsan = false;
#endif

// Registers mapped memory that points to allocations: LeakSanitizer does not scan such memory by itself. If
// goroutines are left behind at the end, so are the caches of the Ps.
inline void leads_to_allocations([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(TUZA_ASAN)
  __lsan_register_root_region(memory, bytes);
#endif
}
inline void leads_nowhere([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(TUZA_ASAN)
  __lsan_unregister_root_region(memory, bytes);
#endif
}

// The allocations that these words point to are never freed, and do not count as leaks.
#if defined(TUZA_ASAN)
[[gnu::no_sanitize_address]]
#endif
inline void allocations_stay([[maybe_unused]] std::uintptr_t begin, [[maybe_unused]] std::uintptr_t end) {
#if defined(TUZA_ASAN)
  constexpr std::uintptr_t kWord = sizeof(void*);
  for (std::uintptr_t at = (begin + kWord - 1) & ~(kWord - 1); at + kWord <= end; at += kWord) {
    const void* pointer = *reinterpret_cast<const void* const*>(at);
    if (pointer != nullptr) __lsan_ignore_object(pointer);
  }
#endif
}

// Part of every G. Owner: the thread that may run the goroutine or switch to it.
struct SanitizerState {
#if defined(TUZA_ASAN)
  const void* stack_low = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;
#elif defined(TUZA_TSAN)
  TsanFiber tsan;
#endif

  // The goroutine is about to get a fresh stack [low, low + bytes).
  void goroutine_starts([[maybe_unused]] void* low, [[maybe_unused]] std::size_t bytes) {
#if defined(TUZA_ASAN)
    stack_low = low;
    stack_bytes = bytes;
    fake_stack = nullptr;
#elif defined(TUZA_TSAN)
    tsan = take_tsan_fiber();
#endif
  }

  // The goroutine has left its stack for good. Frames that never returned (always including the last ones)
  // left redzones behind, which would trap the next goroutine on this stack.
  void goroutine_ended() {
#if defined(TUZA_ASAN)
    __asan_unpoison_memory_region(stack_low, stack_bytes);
#elif defined(TUZA_TSAN)
    keep_tsan_fiber(std::exchange(tsan, {}));
#endif
  }

  // The G is destroyed. Its goroutine may have been abandoned in any frame.
  void g_ends() {
#if defined(TUZA_ASAN)
    __asan_unpoison_memory_region(stack_low, stack_bytes);
#elif defined(TUZA_TSAN)
    if (tsan.fiber != nullptr) __tsan_destroy_fiber(tsan.fiber);
    tsan = {};
#endif
  }

  // The state belongs to the scheduler's own context on the calling thread.
  void thread_starts() {
#if defined(TUZA_ASAN)
    pthread_attr_t attr;
    void* low = nullptr;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
      pthread_attr_getstack(&attr, &low, &stack_bytes);
      pthread_attr_destroy(&attr);
    }
    stack_low = low;
#elif defined(TUZA_TSAN)
    tsan = {__tsan_get_current_fiber()};
#endif
  }
};

// Call immediately before the switch; `ends` if `from` never resumes.
inline void sanitizer_before_switch([[maybe_unused]] SanitizerState& from,
                                    [[maybe_unused]] const SanitizerState& to, [[maybe_unused]] bool ends) {
#if defined(TUZA_ASAN)
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, to.stack_low, to.stack_bytes);
#elif defined(TUZA_TSAN)
  __tsan_switch_to_fiber(to.tsan.fiber, 0);
#endif
}

// Call when frames of this stack are about to be left without returning. (ASan notices a throw by itself.)
inline void sanitizer_before_unwinding() {
#if defined(TUZA_ASAN)
  __asan_handle_no_return();
#endif
}

// Call first on the new stack.
inline void sanitizer_after_switch([[maybe_unused]] SanitizerState& self) {
#if defined(TUZA_ASAN)
  __sanitizer_finish_switch_fiber(self.fake_stack, nullptr, nullptr);
#endif
}

}  // namespace tuza::rt
