// A process that can open no more descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/syscall.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tuza::net::testing {

inline int highest_open() {
  int highest = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    if (sys::invoke(SYS_fcntl, fd, F_GETFD) >= 0) highest = std::max(highest, fd);  // not the directory's
  }
  return highest;
}

// For a scope, the process can open `left` descriptors: every free number below the highest is filled, and the limit is set
// so far above.
class NoMoreDescriptors {
 public:
  explicit NoMoreDescriptors(int left = 0) {
    sys::invoke(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &before_);
    const int highest = highest_open();
    for (;;) {
      const int fd = static_cast<int>(sys::invoke(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC));
      EXPECT_GE(fd, 0);
      fillers_.push_back(fd);
      if (fd > highest) break;
    }
    struct rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(fillers_.back() + 1 + left);
    EXPECT_EQ(sys::invoke(SYS_prlimit64, 0, RLIMIT_NOFILE, &now, nullptr), 0);
  }
  ~NoMoreDescriptors() {
    free_some(fillers_.size());
    EXPECT_EQ(sys::invoke(SYS_prlimit64, 0, RLIMIT_NOFILE, &before_, nullptr), 0);
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

  void free_some(std::size_t n) {
    for (; n > 0 && !fillers_.empty(); --n) {
      sys::invoke(SYS_close, fillers_.back());
      fillers_.pop_back();
    }
  }

 private:
  struct rlimit before_{};
  std::vector<int> fillers_;
};

}  // namespace tuza::net::testing
