#include <tuza/sched/rt/base/thread_limit.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/base/small_file.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

namespace tuza::rt {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

std::uint64_t limit_of(int resource) {
  struct rlimit limit{};
  const bool known = sys::invoke(SYS_prlimit64, 0, resource, nullptr, &limit) == 0;
  return known && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : kNone;
}

// The number in a file of a cgroup; kNone: "max", or there is no such file.
std::uint64_t number_in(std::string_view mount, std::string_view group, std::string_view file) {
  Line path(Line::kNowhere);
  path << mount << group << file << '\0';
  std::array<char, 32> buffer;
  const std::string_view text = read_small_file(path.text().data(), buffer);
  std::uint64_t number = kNone;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The limit of `group` or of a group above it that is reached; kNone: none is. (In a
// container, the path may be the host's: then only the mount itself is found.)
std::uint64_t reached_in(std::string_view mount, std::string_view group) {
  for (;;) {
    const std::uint64_t limit = number_in(mount, group, "/pids.max");
    if (limit != kNone && number_in(mount, group, "/pids.current") >= limit) return limit;
    if (group.empty()) return kNone;
    group = group.substr(0, group.rfind('/'));
  }
}

// The cgroups' limit that is reached; kNone: none is.
std::uint64_t reached_pids_max() {
  std::array<char, 2048> buffer;
  // Lines such as "0::/system.slice/hello.service", and in version 1 "4:pids:/docker/0123".
  std::string_view lines = read_small_file("/proc/self/cgroup", buffer);
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    const bool v2 = line.starts_with("0::");
    const std::size_t path = line.find(":/");
    if (path == std::string_view::npos || !(v2 || line.find(":pids:") < path + 1)) continue;
    line.remove_prefix(path + 1);
    if (line == "/") line = {};
    const std::uint64_t limit = reached_in(v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids", line);
    if (limit != kNone) return limit;
  }
  return kNone;
}

}  // namespace

void explain_refused_thread(Line& text, int error) {
  if (error != EAGAIN) {
    text << "errno " << error;
    return;
  }
  if (const std::uint64_t limit = reached_pids_max(); limit != kNone) {
    text << "pids.max of the cgroup (TasksMax), " << limit << ", is reached";
    return;
  }
  // Root is not bound by the limit of its user.
  const std::uint64_t of_user = sys::invoke(SYS_geteuid) == 0 ? kNone : limit_of(RLIMIT_NPROC);
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
