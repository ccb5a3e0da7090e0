// Helpers shared by File, Directory and the functions on paths. Internal: not installed.
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/file_info.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/result.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct stat;

namespace tuza::detail {

// A call of sched/arch/calls.h, or another that returns -errno, in the scope of a BlockingCall. It is repeated if a signal
// has interrupted it: not for close, which has closed the descriptor even then. Returns -errno. Parks.
template <class Call, class... Args>
long blocking_syscall(CallLength length, Call call, Args... args) {
  const BlockingCall scope(length);
  for (;;) {
    const long result = call(args...);
    if (result != -EINTR) return result;
  }
}
template <class Call, class... Args>
long blocking_syscall(Call call, Args... args) {
  return blocking_syscall(CallLength::kUnknown, call, args...);
}

// Fills `into` from `offset` on; returns fewer bytes at the end of the file, or before an error, which the next call
// returns. -errno. Parks.
long read_at(int fd, std::span<char> into, std::uint64_t offset);

// The error for a system call that returned -errno.
Error file_error(long result, std::string_view op, std::string_view path);
// Success, or the error.
Result<void> check_call(long result, std::string_view op, std::string_view path);

// A zero-terminated copy, as the kernel requires; EINVAL if `path` contains a zero byte, which would truncate
// it.
Result<std::string> kernel_path(std::string_view path, std::string_view op);

// Opens with O_CLOEXEC. Parks.
Result<int> open_path(const std::string& path, int flags, std::uint32_t mode);

FileType file_type(std::uint32_t st_mode);
FileInfo file_info(const struct stat& from);

}  // namespace tuza::detail
