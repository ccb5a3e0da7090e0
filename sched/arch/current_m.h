// The M of the calling thread: the thread-local through which the runtime finds its state.
//
// A goroutine may resume on another thread, so the address of a thread-local must never survive a switch.
// Compilers cache that address nevertheless: GCC and Clang treat the thread pointer as constant within a
// function. Reading the variable through a volatile asm statement forces a fresh read at every call, and with
// the initial-exec model the read takes two loads and no call.
//
// Thread safety: each thread sees its own value. Null on threads that are not Ms.
#pragma once

namespace tuza::rt {
struct M;
}

#if !defined(__APPLE__)
extern "C" {
extern thread_local tuza::rt::M* tuza_tls_m __attribute__((tls_model("initial-exec")));
}
#endif

namespace tuza::rt {

// The M of the calling thread. Valid until the next switch; read it again after one.
#if defined(__APPLE__)
// Mach-O finds a thread-local by a call, which a compiler may make once for two reads. So the read is a call itself.
[[nodiscard]] M* current_m();
#else
[[nodiscard]] inline M* current_m() {
  M* m;
#if defined(__x86_64__)
  asm volatile(
      "movq tuza_tls_m@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(m));
#elif defined(__aarch64__)
  M* offset;
  asm volatile(
      "mrs %0, tpidr_el0\n\t"
      "adrp %1, :gottprel:tuza_tls_m\n\t"
      "ldr %1, [%1, #:gottprel_lo12:tuza_tls_m]\n\t"
      "ldr %0, [%0, %1]"
      : "=&r"(m), "=&r"(offset));
#endif
  return m;
}
#endif

// Binds the calling thread to `m` (null: unbinds it). Only at the start and the end of an M.
void set_current_m(M* m);

}  // namespace tuza::rt
