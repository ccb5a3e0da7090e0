// Tells Valgrind about stacks.
//
// Valgrind takes a change of the stack pointer by less than 2 MB for a large frame, and declares what lies between
// unreadable, unless it knows both stacks. So the stacks of goroutines are announced. It knows those of threads.
//
// A program asks Valgrind by a sequence of instructions that changes nothing. Valgrind's manual (Client requests) calls
// the sequence and the numbers a fixed interface, which programs may contain in any build: on a real processor the
// answer is the default, 0. Its headers are not needed.
//
// Thread safety: thread-safe. None of these calls parks, allocates or takes a lock.
#pragma once

#include <array>
#include <cstdint>

namespace tuza::rt {

enum class ValgrindRequest : std::uintptr_t {
  kRunningOnValgrind = 0x1001,
  kStackRegister = 0x1501,
  kStackDeregister = 0x1502,
  kMakeMemoryUndefined = 0x4d43'0001,  // of Memcheck; other tools ignore it
};

inline std::uintptr_t ask_valgrind(ValgrindRequest request, std::uintptr_t a = 0, std::uintptr_t b = 0) {
  const std::array<std::uintptr_t, 6> words{static_cast<std::uintptr_t>(request), a, b, 0, 0, 0};
#if defined(__x86_64__)
  std::uintptr_t answer = 0;
  asm volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(words.data())
      : "cc", "memory");
  return answer;
#elif defined(__aarch64__)
  register std::uintptr_t answer asm("x3") = 0;
  register const std::uintptr_t* at asm("x4") = words.data();
  asm volatile(
      "ror x12, x12, #3\n\t"
      "ror x12, x12, #13\n\t"
      "ror x12, x12, #51\n\t"
      "ror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(answer)
      : "r"(at)
      : "cc", "memory");
  return answer;
#else
#error "processor not supported"
#endif
}

[[nodiscard]] inline bool on_valgrind() { return ask_valgrind(ValgrindRequest::kRunningOnValgrind) != 0; }

// Valgrind's name of a stack [low, top). Without Valgrind the calls do nothing.
struct ValgrindStack {
  std::uint32_t id = 0;

  void begins(std::uintptr_t low, std::uintptr_t top) {
    id = static_cast<std::uint32_t>(ask_valgrind(ValgrindRequest::kStackRegister, low, top - 1));
  }
  void ends() const { ask_valgrind(ValgrindRequest::kStackDeregister, id); }
};

// The frames on a stack are gone without having returned, and others may write to it before it is switched to.
inline void valgrind_forgets_frames(std::uintptr_t low, std::uintptr_t top) {
  ask_valgrind(ValgrindRequest::kMakeMemoryUndefined, low, top - low);
}

}  // namespace tuza::rt
