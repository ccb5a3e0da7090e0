// What File, Directory and the functions on paths have in common. Inside only: not installed.
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/file_info.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/result.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

struct stat;

namespace tuza::detail {

// A system call in the scope of a BlockingCall, made again when a signal has interrupted it; not for close,
// which has closed even then. Returns -errno. Parks.
template <class... Args>
long blocking_syscall(CallLength length, long number, Args... args) {
  const BlockingCall scope(length);
  for (;;) {
    const long result = sys::invoke(number, args...);
    if (result != -EINTR) return result;
  }
}
template <class... Args>
long blocking_syscall(long number, Args... args) {
  return blocking_syscall(CallLength::kUnknown, number, args...);
}

// The error for a system call that returned -errno.
Error file_error(long result, std::string_view op, std::string_view path);
// Nothing, or the error.
Result<void> check_call(long result, std::string_view op, std::string_view path);

// A copy that ends with a zero, as the kernel takes it; EINVAL if there is a zero inside, which would end it.
Result<std::string> kernel_path(std::string_view path, std::string_view op);

// Opens with O_CLOEXEC. Parks.
Result<int> open_path(const std::string& path, int flags, std::uint32_t mode);

FileType file_type(std::uint32_t st_mode);
FileInfo file_info(const struct stat& from);

}  // namespace tuza::detail
