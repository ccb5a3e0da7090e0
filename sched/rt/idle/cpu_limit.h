// The CPU limit: how many CPUs this process may use, and therefore how many Ps it should have.
//
// The limit is the smaller of the affinity mask and the cgroup's CPU quota (v2 cpu.max, v1 cfs_quota_us),
// with the quota rounded up, and at least 1. Without it, a container with half a CPU on a 64-core machine
// would get 64 threads that are throttled together for most of every period. Go has done the same since 1.25.
//
// find() may allocate and runs once, at start. cpus() makes system calls only, so that sysmon, which must
// never wait for malloc, can call it repeatedly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tuza::rt {

class CpuLimit {
 public:
  // Finds the files that limit this process. `root` is prefixed to all paths, so that tests can pass a fake
  // tree.
  void find(const std::string& root = "");

  // The number of CPUs allowed now, 1 to kMaxProcsLimit. A value that can no longer be read keeps its last
  // value. Blocks the M for some system calls.
  [[nodiscard]] std::int32_t cpus();

  // The current quota, in thousandths of a CPU; 0 if there is no quota.
  [[nodiscard]] std::int64_t quota_milli();

 private:
  // A cgroup and each of its ancestors have a limit; the tightest one counts.
  static constexpr std::size_t kLevelsMax = 12;
  static constexpr std::size_t kPathMax = 256;
  struct Directory {
    bool v2 = false;
    char path[kPathMax] = {};
    std::int64_t quota_milli = 0;  // the value last read
  };
  void add_levels(const std::string& mount, std::string path, bool v2);

  std::array<Directory, kLevelsMax> directories_;
  std::size_t count_ = 0;
  std::int32_t allowed_ = 1;  // by the affinity mask, the value last read
};

}  // namespace tuza::rt
