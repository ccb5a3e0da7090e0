#include <tuza/sched/rt/thread_watch.h>

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/print.h>

#include <string_view>

namespace tuza::rt {
namespace {

// The kernel's struct sched_attr as of Linux 5.3; libc's headers have none.
struct SchedAttr {
  std::uint32_t size = sizeof(SchedAttr);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
  std::uint32_t util_min = 0;
  std::uint32_t util_max = 0;
};

}  // namespace

std::int64_t thread_cpu_ns(std::int32_t thread_id) {
  // What pthread_getcpuclockid() makes of a thread: CPUCLOCK_SCHED of one thread.
  const auto clock = static_cast<clockid_t>((~static_cast<std::uint32_t>(thread_id) << 3) | 6);
  struct timespec used{};
  if (sys::invoke(SYS_clock_gettime, clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

bool thread_is_runnable(std::int32_t thread_id, bool unknown) {
  Line path(Line::kNowhere);
  path << "/proc/self/task/" << thread_id << "/stat" << '\0';
  const long fd = sys::invoke(SYS_openat, AT_FDCWD, path.text().data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return unknown;
  char text[128];
  const long size = sys::invoke(SYS_read, fd, text, sizeof text);
  sys::invoke(SYS_close, fd);
  // "123 (name) R ...": the name may hold anything, but no name is that long.
  const std::string_view stat(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) return unknown;
  return stat[name_end + 2] == 'R';
}

void hint_kernel_slice(std::int32_t thread_id, std::int64_t slice_ns) {
  SchedAttr attr;
  if (sys::invoke(SYS_sched_getattr, thread_id, &attr, sizeof attr, 0) != 0) return;
  if (attr.policy != SCHED_OTHER) return;
  attr.size = sizeof attr;
  attr.flags &= SCHED_FLAG_RESET_ON_FORK;
  attr.runtime = static_cast<std::uint64_t>(slice_ns);
  sys::invoke(SYS_sched_setattr, thread_id, &attr, 0);
}

}  // namespace tuza::rt
