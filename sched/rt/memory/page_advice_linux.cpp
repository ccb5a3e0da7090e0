#include <tuza/sched/rt/memory/page_advice.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/calls.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace tuza::rt {
namespace {

// Defined here because Debian's libc headers are older than this advice.
constexpr int kMadvGuardInstall = 102;

long advise(void* at, std::size_t bytes, int advice) { return sys::invoke(SYS_madvise, at, bytes, advice); }

// Proves that there is a guard at `at`. The result of madvise does not prove it: emulators of Linux answer 0
// to advice that they do not know. A guard refuses access by the kernel too, so a system call that reads from
// `at` fails. Without a guard the kernel reads a signal mask from `at`; the mask is empty, because the page is
// new, and so changes nothing.
bool refuses_access(void* at) {
  return sys::invoke(SYS_rt_sigprocmask, SIG_BLOCK, at, nullptr, sizeof(std::uint64_t)) == -EFAULT;
}

std::atomic<bool> g_guard_proven{false};  // relaxed: a thread that misses it proves again

}  // namespace

void give_back_pages(void* at, std::size_t bytes) { advise(at, bytes, MADV_DONTNEED); }

void refuse_huge_pages(void* at, std::size_t bytes) { advise(at, bytes, MADV_NOHUGEPAGE); }

bool advise_guard(void* low, std::size_t bytes) {
  if (advise(low, bytes, kMadvGuardInstall) != 0) return false;
  if (g_guard_proven.load(std::memory_order_relaxed)) return true;
  if (!refuses_access(low)) return false;
  g_guard_proven.store(true, std::memory_order_relaxed);
  return true;
}

std::size_t mappings_max() {
  constexpr std::size_t kDefault = 65'530;
  char text[32];
  const long fd = sys::openat(AT_FDCWD, "/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  const long n = fd < 0 ? fd : sys::read(fd, text, sizeof text);
  if (fd >= 0) sys::close(fd);
  std::size_t count = 0;
  if (n <= 0 || std::from_chars(text, text + n, count).ec != std::errc{}) return kDefault;
  return count;
}

}  // namespace tuza::rt
