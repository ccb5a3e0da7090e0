#include <tuza/sched/arch/current_m.h>

extern "C" {
thread_local constinit tuza::rt::M* tuza_tls_m = nullptr;
}

namespace tuza::rt {

void set_current_m(M* m) {
  tuza_tls_m = m;
  asm volatile("" ::: "memory");  // the reads in current_m() do not declare that they read memory
}

}  // namespace tuza::rt
