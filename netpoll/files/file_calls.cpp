#include <tuza/netpoll/files/file_calls.h>
#include <tuza/netpoll/files/stat_times.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/sched/arch/calls.h>

namespace tuza::detail {

long read_at(int fd, std::span<char> into, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < into.size()) {
    const long n = blocking_syscall(sys::pread, fd, into.data() + done, into.size() - done, offset + done);
    if (n < 0 && done == 0) return n;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<long>(done);
}

Error file_error(long result, std::string_view op, std::string_view path) {
  return Error::from_errno(static_cast<int>(-result), op, std::string(path));
}

Result<void> check_call(long result, std::string_view op, std::string_view path) {
  if (result < 0) return std::unexpected(file_error(result, op, path));
  return {};
}

Result<std::string> kernel_path(std::string_view path, std::string_view op) {
  if (path.find('\0') != std::string_view::npos) return std::unexpected(file_error(-EINVAL, op, path));
  return std::string(path);
}

Result<int> open_path(const std::string& path, int flags, std::uint32_t mode) {
  const long fd = blocking_syscall(sys::openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return std::unexpected(file_error(fd, "open", path));
  return static_cast<int>(fd);
}

FileType file_type(std::uint32_t st_mode) {
  switch (st_mode & S_IFMT) {
    case S_IFREG: return FileType::kRegular;
    case S_IFDIR: return FileType::kDirectory;
    case S_IFLNK: return FileType::kSymlink;
    case S_IFIFO: return FileType::kFifo;
    case S_IFSOCK: return FileType::kSocket;
    case S_IFCHR: return FileType::kCharacterDevice;
    case S_IFBLK: return FileType::kBlockDevice;
    default: return FileType::kUnknown;
  }
}

FileInfo file_info(const struct stat& from) {
  const struct timespec& modified = modified_at(from);
  const auto since_epoch = std::chrono::seconds(modified.tv_sec) + std::chrono::nanoseconds(modified.tv_nsec);
  return {.type = file_type(from.st_mode),
          .mode = static_cast<std::uint32_t>(from.st_mode & 07777),
          .size_bytes = static_cast<std::uint64_t>(from.st_size),
          .modified = std::chrono::sys_time<std::chrono::nanoseconds>(since_epoch)};
}

}  // namespace tuza::detail
