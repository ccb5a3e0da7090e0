#include <tuza/sched/arch/current_m.h>

#if defined(__APPLE__)
namespace {
thread_local constinit tuza::rt::M* tuza_tls_m = nullptr;
}
#else
extern "C" {
thread_local constinit tuza::rt::M* tuza_tls_m = nullptr;
}
#endif

namespace tuza::rt {

#if defined(__APPLE__)
[[gnu::noinline]] M* current_m() {
  asm volatile("");  // or calls of it might be taken for one
  return tuza_tls_m;
}
#endif

void set_current_m(M* m) {
  tuza_tls_m = m;
  asm volatile("" ::: "memory");  // the reads in current_m() do not declare that they read memory
}

}  // namespace tuza::rt
