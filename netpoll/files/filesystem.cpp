#include <tuza/netpoll/filesystem.h>
#include <tuza/sched/arch/calls.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/netpoll/files/file_calls.h>

#include <optional>
#include <string>
#include <utility>

namespace tuza::fs {

using detail::blocking_syscall;
using detail::check_call;
using detail::kernel_path;

Result<FileInfo> stat(std::string_view path) {
  const Result<std::string> name = kernel_path(path, "stat");
  if (!name) return std::unexpected(name.error());
  struct stat info{};
  const long result = blocking_syscall(sys::fstatat, AT_FDCWD, name->c_str(), &info, 0);
  if (result < 0) return std::unexpected(detail::file_error(result, "stat", path));
  return detail::file_info(info);
}

Result<void> remove(std::string_view path) {
  const Result<std::string> name = kernel_path(path, "remove");
  if (!name) return std::unexpected(name.error());
  long result = blocking_syscall(sys::unlinkat, AT_FDCWD, name->c_str(), 0);
  if (result == -EISDIR) result = blocking_syscall(sys::unlinkat, AT_FDCWD, name->c_str(), AT_REMOVEDIR);
  return check_call(result, "remove", path);
}

Result<void> rename(std::string_view from, std::string_view to) {
  const Result<std::string> old_name = kernel_path(from, "rename");
  if (!old_name) return std::unexpected(old_name.error());
  const Result<std::string> new_name = kernel_path(to, "rename");
  if (!new_name) return std::unexpected(new_name.error());
  const long result =
      blocking_syscall(sys::renameat, AT_FDCWD, old_name->c_str(), AT_FDCWD, new_name->c_str());
  if (result < 0) return check_call(result, "rename", *old_name + " to " + *new_name);
  return {};
}

Result<void> make_directory(std::string_view path, std::uint32_t mode) {
  const Result<std::string> name = kernel_path(path, "mkdir");
  if (!name) return std::unexpected(name.error());
  return check_call(blocking_syscall(sys::mkdirat, AT_FDCWD, name->c_str(), mode), "mkdir", path);
}

Result<std::vector<DirectoryEntry>> list(std::string_view path) {
  Result<Directory> directory = Directory::open(path);
  if (!directory) return std::unexpected(directory.error());
  std::vector<DirectoryEntry> entries;
  for (;;) {
    Result<std::optional<DirectoryEntry>> entry = directory->next();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return entries;
    entries.push_back(std::move(**entry));
  }
}

}  // namespace tuza::fs
