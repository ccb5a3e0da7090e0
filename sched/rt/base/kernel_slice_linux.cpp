#include <tuza/sched/rt/base/kernel_slice.h>

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::rt {
namespace {

// The kernel's struct sched_attr as of Linux 5.3, which the headers of libc lack.
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
