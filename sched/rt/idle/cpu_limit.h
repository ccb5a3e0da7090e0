// How many Ps this process should have: the CPUs it may use.
//
// The smaller of the affinity mask and the cgroup's CPU quota (v2 cpu.max, v1 cfs_quota_us), the quota
// rounded up, at least 1. A container with half a CPU on a 64-core machine otherwise gets 64 threads that
// are throttled together for most of every period. Go does the same since 1.25.
//
// find() may allocate and runs once, at start. cpus() makes system calls only, so that sysmon, which must
// never wait for malloc, can call it again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tuza::rt {

struct Sched;

class CpuLimit {
 public:
  // Finds the files that limit this process. `root` is where the file systems are looked for; tests give a
  // made-up tree.
  void find(const std::string& root = "");

  // The CPUs allowed now, 1 to kMaxProcsLimit. Blocks the M for some system calls.
  // What cannot be read any more counts as it was.
  [[nodiscard]] std::int32_t cpus();

  // The CPUs worth of quota now, in thousandths; 0 if there is no quota.
  [[nodiscard]] std::int64_t quota_milli();

 private:
  // A cgroup and those above it each have a limit; the tightest counts.
  static constexpr std::size_t kLevelsMax = 12;
  static constexpr std::size_t kPathMax = 256;
  struct Directory {
    bool v2 = false;
    char path[kPathMax] = {};
    std::int64_t quota_milli = 0;  // as it was read last
  };
  void add_levels(const std::string& mount, std::string path, bool v2);

  std::array<Directory, kLevelsMax> directories_;
  std::size_t count_ = 0;
  std::int32_t allowed_ = 1;  // by the affinity mask, as it was read last
};

// Re-reads the limits and changes the number of Ps if they changed. Called by sysmon.
void follow_cpu_limit(Sched& sched);

}  // namespace tuza::rt
