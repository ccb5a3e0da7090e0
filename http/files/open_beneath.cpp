#include <tuza/http/files/open_beneath.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/http/files/openat2.h>
#include <tuza/netpoll/files/file_calls.h>

#include <atomic>

namespace tuza::http {
namespace {

using tuza::detail::blocking_syscall;

constexpr int kTriesMax = 8;  // of a look-up during which other files were renamed

}  // namespace

int open_beneath_flags(int extra) {
  constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  // O_PATH excludes others (openat2).
  return (extra & O_PATH) != 0 ? O_PATH | O_CLOEXEC : kFileFlags | extra;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) blocking([fd = fd_] { return sys::close(fd); });
}

long OpenFile::stat(struct stat& into) const { return blocking_syscall(sys::fstat, fd_, &into); }

long OpenFile::pread(std::span<char> into, std::uint64_t offset) const {
  return tuza::detail::read_at(fd_, into, offset);
}

long open_folder(const std::string& path) {
  return blocking_syscall(sys::openat, AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

long open_beneath(int folder, const std::string& path, int flags) {
  static std::atomic<bool> unknown_call{false};
  if (unknown_call.load(std::memory_order_relaxed)) return open_beneath_by_steps(folder, path, flags);
  long fd = -EAGAIN;
  for (int i = 0; i < kTriesMax && fd == -EAGAIN; ++i) {
    fd = blocking_syscall(open_beneath_at_once, folder, path.c_str(), open_beneath_flags(flags));
  }
  if (fd == -ENOSYS) {
    unknown_call.store(true, std::memory_order_relaxed);
    return open_beneath_by_steps(folder, path, flags);
  }
  // Some seccomp filters answer calls that they do not know with EPERM. If the file itself must not be read, the fall-back
  // fails too.
  if (fd == -EPERM) return open_beneath_by_steps(folder, path, flags);
  return fd;
}

}  // namespace tuza::http
