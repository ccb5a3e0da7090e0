#include <tuza/sched/arch/interrupted.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cstring>

namespace tuza {

Interrupted interrupted_at(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto value = [&machine](int index) { return static_cast<std::uintptr_t>(machine.gregs[index]); };
  return {value(REG_RIP), value(REG_RSP), value(REG_RBP)};
#elif defined(__aarch64__)
  return {machine.pc, machine.sp, machine.regs[29]};
#endif
}

bool interrupted_at_futex(const void* context) {
  if (context == nullptr) return false;
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  // An instruction that begins on another page than the next instruction may lie in unmapped memory.
  constexpr std::uint64_t kPage = 4096;
#if defined(__x86_64__)
  constexpr std::uint16_t kSyscall = 0x050f;
  // After the call, the number of the system call is no longer known. Its second argument is: hardly any
  // other call has such a small number there and so small a result.
  constexpr std::uint64_t kFlags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
  const std::uint64_t next = static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
  const bool operation = (static_cast<std::uint64_t>(machine.gregs[REG_RSI]) & ~kFlags) <= FUTEX_LOCK_PI2;
  const auto calls = [](std::uint64_t address) {
    std::uint16_t bytes = 0;
    std::memcpy(&bytes, reinterpret_cast<const void*>(address), sizeof bytes);
    return bytes == kSyscall;
  };
  if (!operation) return false;
  if (next % kPage >= 2 && calls(next - 2)) return machine.gregs[REG_RAX] <= 1;
  return next % kPage <= kPage - 2 && machine.gregs[REG_RAX] == SYS_futex && calls(next);
#elif defined(__aarch64__)
  constexpr std::uint32_t kSvc = 0xD4000001;
  const std::uint64_t next = machine.pc;
  const auto calls = [](std::uint64_t address) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, reinterpret_cast<const void*>(address), sizeof bytes);
    return bytes == kSvc;
  };
  if (next % sizeof kSvc != 0 || machine.regs[8] != SYS_futex) return false;
  return calls(next) || (next % kPage != 0 && calls(next - sizeof kSvc));
#else
#error "processor not supported"
#endif
}

}  // namespace tuza
