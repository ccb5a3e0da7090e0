#include <tuza/sched/rt/idle/cpu_limit.h>

#include <sched.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/base/small_file.h>
#include <tuza/sched/rt/idle/idle_mask.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tuza::rt {
namespace {

bool has_word(const std::string& list, std::string_view word) {
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) {
    if (item == word) return true;
  }
  return false;
}

// A cgroup hierarchy: its mount point, the directory at the top of the mount, and the directory of this
// process.
struct Hierarchy {
  std::string mount, top, member;

  // The directory of this process, relative to `mount`. Without a cgroup namespace both `top` and `member`
  // begin with the container's own path.
  [[nodiscard]] std::string relative() const {
    if (top.size() > 1 && member.compare(0, top.size(), top) == 0) return member.substr(top.size());
    return member;
  }
};

// /proc/self/mountinfo, proc(5): id parent device top mount options [tags] - type source options
void find_mounts(const std::string& root, Hierarchy& v2, Hierarchy& v1) {
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line);
    std::istringstream tail(line.substr(dash + 3));
    std::string id, parent, device, top, mount, type, source, options;
    head >> id >> parent >> device >> top >> mount;
    tail >> type >> source >> options;
    if (type == "cgroup2") v2.mount = mount, v2.top = top;
    if (type == "cgroup" && has_word(options, "cpu")) v1.mount = mount, v1.top = top;
  }
}

// /proc/self/cgroup, cgroups(7): hierarchy:controllers:path
void find_memberships(const std::string& root, Hierarchy& v2, Hierarchy& v1) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (line.compare(0, 3, "0::") == 0) v2.member = line.substr(second + 1);
    if (has_word(line.substr(first + 1, second - first - 1), "cpu")) v1.member = line.substr(second + 1);
  }
}

// Reads directory/file into `text` and returns its content; empty if the file cannot be read.
std::string_view read_file(const char* directory, const char* file, std::array<char, 128>& text) {
  char path[512];
  const std::size_t n = std::strlen(directory), m = std::strlen(file);
  if (n + m + 1 > sizeof path) return {};
  std::copy_n(directory, n, path);
  std::copy_n(file, m + 1, path + n);
  return read_small_file(path, text);
}

// Parses the number at the start of `text`, and removes it and one separator from `text`; -1 if there is
// none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return -1;
  text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  return value;
}

// Returns 0 if there is no quota, and -1 if it cannot be read.
std::int64_t read_quota_milli(const char* directory, bool v2) {
  std::array<char, 128> text;
  std::int64_t quota = -1, period = -1;
  if (v2) {
    std::string_view limits = read_file(directory, "/cpu.max", text);  // "max 100000" or "50000 100000"
    if (limits.empty()) return -1;
    quota = take_number(limits);
    period = take_number(limits);
  } else {
    std::string_view limit = read_file(directory, "/cpu.cfs_quota_us", text);
    if (limit.empty()) return -1;
    quota = take_number(limit);
    limit = read_file(directory, "/cpu.cfs_period_us", text);
    period = take_number(limit);
  }
  return quota <= 0 || period <= 0 ? 0 : std::max<std::int64_t>(quota * 1000 / period, 1);
}

// Returns 0 if the mask cannot be read.
std::int32_t cpus_by_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sys::invoke(SYS_sched_getaffinity, 0, sizeof set, &set) < 0) return 0;
  return CPU_COUNT(&set);
}

}  // namespace

void CpuLimit::add_levels(const std::string& mount, std::string path, bool v2) {
  if (mount.empty()) return;
  while (!path.empty() && path.back() == '/') path.pop_back();
  for (;;) {
    const std::string directory = mount + path;
    if (count_ < kLevelsMax && directory.size() < kPathMax) {
      directories_[count_].v2 = v2;
      directory.copy(directories_[count_].path, kPathMax - 1);
      ++count_;
    }
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

void CpuLimit::find(const std::string& root) {
  Hierarchy v2, v1;
  find_mounts(root, v2, v1);
  find_memberships(root, v2, v1);
  if (!v2.mount.empty()) add_levels(root + v2.mount, v2.relative(), true);
  if (!v1.mount.empty()) add_levels(root + v1.mount, v1.relative(), false);
}

std::int64_t CpuLimit::quota_milli() {
  std::int64_t least = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::int64_t read = read_quota_milli(directories_[i].path, directories_[i].v2);
    if (read >= 0) directories_[i].quota_milli = read;
    const std::int64_t quota = directories_[i].quota_milli;
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return least;
}

std::int32_t CpuLimit::cpus() {
  if (const std::int32_t read = cpus_by_affinity(); read > 0) allowed_ = read;
  std::int64_t cpus = allowed_;
  const std::int64_t quota = quota_milli();
  if (quota > 0) cpus = std::min(cpus, (quota + 999) / 1000);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(cpus, 1, kMaxProcsLimit));
}

}  // namespace tuza::rt
