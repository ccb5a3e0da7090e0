// Tells the core that it runs a spin loop, so that it saves power and yields to its sibling.
#pragma once

namespace tuza::rt {

inline void cpu_relax() {
#if defined(__x86_64__)
  asm volatile("pause" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace tuza::rt
