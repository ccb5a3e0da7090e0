// The saved machine context of a goroutine that is not running, and the switch between two contexts.
//
// A context is one word: the stack pointer after the callee-saved registers were pushed. The frame is drawn
// in context_<arch>.S. Its size and the offsets that C++ needs are named here once; context_test.cpp checks
// the assembly against them by switching with every register dirty.
//
// Thread safety: a Context has one owner at a time, the thread that saved it or the thread that will load it.
// Publishing a goroutine before its context is saved is the classic bug of every M:N scheduler. rt/switch.h
// therefore publishes only after the switch, from the other side.
//
// Rejected: ucontext (a system call per switch); setjmp/longjmp (mangled pointers; refuses to jump upwards
// when fortified); everything in inline assembly (an unwinder cannot describe what a compiler chose to save).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Context {
  void* sp = nullptr;
};

#if defined(__x86_64__)
inline constexpr std::size_t kFrameBytes = 64;  // fp control, 6 callee-saved, resume address
inline constexpr std::size_t kFrameFpControl = 0;
inline constexpr std::size_t kFrameArgument = 8;   // r12: argument of the entry function
inline constexpr std::size_t kFrameFunction = 16;  // r13: the entry function
inline constexpr std::size_t kFrameFp = 48;        // rbp, the frame pointer
inline constexpr std::size_t kFrameResume = 56;    // where the context resumes
#elif defined(__aarch64__)
inline constexpr std::size_t kFrameBytes = 240;   // x19-x30, q8-q15, fpcr
inline constexpr std::size_t kFrameArgument = 0;  // x19
inline constexpr std::size_t kFrameFunction = 8;  // x20
inline constexpr std::size_t kFrameFp = 80;       // x29, the frame pointer
inline constexpr std::size_t kFrameResume = 88;   // x30
inline constexpr std::size_t kFrameFpControl = 224;
#if defined(__has_feature)
#if __has_feature(shadow_call_stack)
#error "x18 points to a shadow call stack, and the context switch does not switch it"
#endif
#endif
#else
#error "Tuza's context switch exists for x86-64 and aarch64"
#endif

using ContextEntry = void (*)(void* argument);

// Builds a context that calls entry(argument) on the stack that ends (high address) at `stack_top`. `entry`
// must not return: it has no caller. `stack_top` needs no alignment.
Context make_context(std::uintptr_t stack_top, ContextEntry entry, void* argument);

// Their symbols have no underscore before them, on macOS either: the assembler knows them by these names.
extern "C" {
// The switch itself. Saves the callee-saved registers in a frame whose resume address the caller has already
// stored, stores the stack pointer in *save, and resumes `load`. Entered by a jump: use context_switch().
void tuza_context_switch(Context* save, Context load) asm("tuza_context_switch");

// Resumes `load` as if it had just called function(argument) itself instead of having switched away, so that
// an unwinder started there walks the stack of `load`. `function` must leave by another switch. It overwrites
// the frame of `load`, which the caller must restore, and its stack is only as well aligned as at the switch.
// Used to take the back trace of a parked goroutine (rt/report/backtrace.cpp).
void tuza_context_call(Context* save, Context load, ContextEntry function,
                       void* argument) asm("tuza_context_call");

// The first instruction of every context made by make_context; unwinders stop here.
void tuza_context_entry() asm("tuza_context_entry");
}

// Saves the caller's context into *save and resumes `load`. Returns when some thread, possibly another one,
// switches to *save: no thread-local may be carried across this call.
//
// The switch jumps where a call is expected. The processor predicts returns with a stack of its own. A call
// that is never returned from (the switch leaves by a jump) would shift that stack by one entry: every return
// after a switch would be mispredicted, three or four times per park. With a jump at both ends, goroutines
// that park in the same place return along the same predicted path: 17 ns instead of 30 for a yield.
//
// The unwinder does not know that the stack pointer moves in here. The function that contains this code must
// therefore be described by a frame pointer: asking for its frame address makes compilers set one up.
[[gnu::always_inline]] inline void context_switch(Context* save, Context load) {
#if defined(__x86_64__)
  void* to = load.sp;
  const void* frame = __builtin_frame_address(0);
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // leave the caller's red zone alone
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "jmp tuza_context_switch\n"
      "1:\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "+D"(save), "+S"(to)
      : "r"(frame)
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#if defined(__AVX512F__)
        ,
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",
        "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#endif
  );
#elif defined(__aarch64__)
  // Declare the named registers last: nothing between them and the asm statement may become a call.
  void* to = load.sp;
  const void* frame = __builtin_frame_address(0);
  register Context* x0 asm("x0") = save;
  register void* x1 asm("x1") = to;
  asm volatile(
      "adr x30, 1f\n\t"
      "b tuza_context_switch\n"
      "1:\n\t"
      "hint #36"  // bti j, a landing pad: see context_aarch64.S
      : "+r"(x0), "+r"(x1)
      : "r"(frame)
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x30", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
        "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#if !defined(__APPLE__)  // whose compilers never use it
        ,
        "x18"
#endif
#if defined(__ARM_FEATURE_SVE)
        // With SVE, v8-v15 are longer than the 128 bits that the switch saves of each.
        ,
        "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7",
        "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#endif
  );
#endif
}

}  // namespace tuza::rt
