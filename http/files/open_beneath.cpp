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

// By openat2(2), or -ENOSYS: walk.
long open_at_once(int folder, const std::string& path, int flags) {
  static std::atomic<bool> unknown_call{false};
  if (unknown_call.load(std::memory_order_relaxed)) return -ENOSYS;
  long fd = -EAGAIN;
  for (int i = 0; i < kTriesMax && fd == -EAGAIN; ++i) {
    fd = blocking_syscall(open_beneath_at_once, folder, path.c_str(), flags);
  }
  if (fd == -ENOSYS) unknown_call.store(true, std::memory_order_relaxed);
  // Some seccomp filters answer calls that they do not know with EPERM. If the file itself must not be read, the fall-back
  // fails too.
  return fd == -EPERM ? -ENOSYS : fd;
}

}  // namespace

const int kOpenBeneathFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

OpenFile::~OpenFile() {
  if (fd_ >= 0) blocking([fd = fd_] { return sys::close(fd); });
}

long OpenFile::stat(struct stat& into) const { return blocking_syscall(sys::fstat, fd_, &into); }

long OpenFile::pread(std::span<char> into, std::uint64_t offset) const {
  return tuza::detail::read_at(fd_, into, offset);
}

long open_folder(const std::string& path) {
  return blocking_syscall(sys::openat, AT_FDCWD, path.c_str(), sys::kOpenToEnter | O_DIRECTORY | O_CLOEXEC,
                          0);
}

long open_beneath(int folder, const std::string& path, int flags) {
  const long fd = open_at_once(folder, path, kOpenBeneathFlags | flags);
  return fd == -ENOSYS ? open_beneath_by_steps(folder, path, flags) : fd;
}

long stat_beneath(int folder, const std::string& path, struct stat& into) {
  const long fd =
      open_at_once(folder, path, sys::kOpenToEnter | O_CLOEXEC);  // where this call exists, of files too
  if (fd == -ENOSYS) return stat_beneath_by_steps(folder, path, into);
  return fd < 0 ? fd : OpenFile(static_cast<int>(fd)).stat(into);
}

}  // namespace tuza::http
