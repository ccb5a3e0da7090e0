#include <tuza/sched/rt/base/thread_limit.h>

#include <sys/resource.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/pids_max.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

namespace tuza::rt {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

std::uint64_t limit_of(int resource) {
  struct rlimit limit{};
  const bool known = sys::getrlimit(resource, &limit) == 0;
  return known && limit.rlim_cur != RLIM_INFINITY ? static_cast<std::uint64_t>(limit.rlim_cur) : kNone;
}

}  // namespace

void explain_refused_thread(Line& text, int error) {
  if (error == ENOMEM) {
    text << "no memory for its stack";
    if (const std::uint64_t limit = limit_of(RLIMIT_AS); limit != kNone)
      text << ": ulimit -v (" << limit / 1024 << " KiB) is reached";
    return;
  }
  if (error != EAGAIN) {
    text << "errno " << error;
    return;
  }
  if (const std::uint64_t limit = reached_pids_max(); limit != kNoPidsMax) {
    text << "pids.max of the cgroup (TasksMax), " << limit << ", is reached";
    return;
  }
  // Root is not bound by the limit of its user.
  const std::uint64_t of_user = sys::geteuid() == 0 ? kNone : limit_of(RLIMIT_NPROC);
  const std::uint64_t address_space = limit_of(RLIMIT_AS);
  if (of_user != kNone) text << "ulimit -u (" << of_user << " threads of this user)";
  if (address_space != kNone) {
    text << (of_user != kNone ? " or " : "") << "ulimit -v (" << address_space / 1024 << " KiB)";
  }
  if (of_user == kNone && address_space == kNone) {
    text << "a limit of the system (pids.max, kernel.threads-max) or the memory for a stack";
  }
  text << " is reached";
}

Error thread_refused(std::string_view what, int error) {
  Line text(Line::kNowhere);
  text << "cannot create " << what << ": ";
  explain_refused_thread(text, error);
  return Error::from_text(std::error_code(error, std::system_category()), std::string(text.text()));
}

}  // namespace tuza::rt
