// Reads the beginning of a small file, such as those in /proc and of cgroups, by system calls only: for threads that must
// not allocate. Blocks the M.
#pragma once

#include <fcntl.h>
#include <tuza/sched/arch/calls.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace tuza::rt {

// What fits into `buffer`; empty if the file cannot be read.
inline std::string_view read_small_file(const char* path, std::span<char> buffer) {
  const long fd = sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const long size = sys::read(fd, buffer.data(), buffer.size());
  sys::close(fd);
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace tuza::rt
