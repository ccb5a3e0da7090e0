// POSIX names no registers, so each system has its own words for them. Whether a thread waits is hidden in its C library.
#include <tuza/sched/arch/interrupted.h>

#include <signal.h>
#include <sys/types.h>
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif

namespace tuza {

Interrupted interrupted_at(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  const auto registers = [](auto pc, auto sp, auto fp) {
    return Interrupted{static_cast<std::uintptr_t>(pc), static_cast<std::uintptr_t>(sp),
                       static_cast<std::uintptr_t>(fp)};
  };
#if defined(__APPLE__) && defined(__x86_64__)
  return registers(machine->__ss.__rip, machine->__ss.__rsp, machine->__ss.__rbp);
#elif defined(__APPLE__)
  return registers(machine->__ss.__pc, machine->__ss.__sp, machine->__ss.__fp);
#elif defined(__FreeBSD__) && defined(__x86_64__)
  return registers(machine.mc_rip, machine.mc_rsp, machine.mc_rbp);
#elif defined(__FreeBSD__)
  return registers(machine.mc_gpregs.gp_elr, machine.mc_gpregs.gp_sp, machine.mc_gpregs.gp_x[29]);
#elif defined(__linux__) && defined(__x86_64__)
  return registers(machine.gregs[REG_RIP], machine.gregs[REG_RSP], machine.gregs[REG_RBP]);
#elif defined(__linux__)
  return registers(machine.pc, machine.sp, machine.regs[29]);
#else
#error "the registers of this system are not known"
#endif
}

bool interrupted_at_futex(const void*) { return false; }

}  // namespace tuza
