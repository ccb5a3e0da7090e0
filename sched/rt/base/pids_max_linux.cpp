#include <tuza/sched/rt/base/pids_max.h>

#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/small_file.h>

#include <array>
#include <charconv>
#include <string_view>

namespace tuza::rt {
namespace {

// The number in a file of a cgroup; kNoPidsMax: "max", or there is no such file.
std::uint64_t number_in(std::string_view mount, std::string_view group, std::string_view file) {
  Line path(Line::kNowhere);
  path << mount << group << file << '\0';
  std::array<char, 32> buffer;
  const std::string_view text = read_small_file(path.text().data(), buffer);
  std::uint64_t number = kNoPidsMax;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The limit of `group` or of a group above it that is reached; kNoPidsMax: none is. (In a
// container, the path may be the host's: then only the mount itself is found.)
std::uint64_t reached_in(std::string_view mount, std::string_view group) {
  for (;;) {
    const std::uint64_t limit = number_in(mount, group, "/pids.max");
    if (limit != kNoPidsMax && number_in(mount, group, "/pids.current") >= limit) return limit;
    if (group.empty()) return kNoPidsMax;
    group = group.substr(0, group.rfind('/'));
  }
}

}  // namespace

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
    if (limit != kNoPidsMax) return limit;
  }
  return kNoPidsMax;
}

}  // namespace tuza::rt
