#include <tuza/http/files/open_beneath.h>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuza/netpoll/files/file_calls.h>

#include <atomic>

namespace tuza::http {
namespace {

using tuza::detail::blocking_syscall;

constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
// O_PATH excludes others (openat2).
std::uint64_t flags_for(int extra) {
  return static_cast<std::uint64_t>((extra & O_PATH) != 0 ? O_PATH | O_CLOEXEC : kFileFlags | extra);
}
constexpr int kTriesMax = 8;  // of a look-up during which other files were renamed

}  // namespace

OpenFile::~OpenFile() {
  if (fd_ >= 0) blocking([fd = fd_] { return sys::invoke(SYS_close, fd); });
}

long OpenFile::stat(struct stat& into) const { return blocking_syscall(SYS_fstat, fd_, &into); }

long OpenFile::pread(std::span<char> into, std::uint64_t offset) const {
  return tuza::detail::read_at(fd_, into, offset);
}

long open_folder(const std::string& path) {
  return blocking_syscall(SYS_openat, AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

long open_beneath(int folder, const std::string& path, int flags) {
  static std::atomic<bool> unknown_call{false};
  if (unknown_call.load(std::memory_order_relaxed)) return open_beneath_by_steps(folder, path, flags);
  struct open_how how{};
  how.flags = flags_for(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = -EAGAIN;
  for (int i = 0; i < kTriesMax && fd == -EAGAIN; ++i) {
    fd = blocking_syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
  }
  if (fd == -ENOSYS) {
    unknown_call.store(true, std::memory_order_relaxed);
    return open_beneath_by_steps(folder, path, flags);
  }
  // Old seccomp filters answer unknown calls with EPERM. If the file itself must not be read, the fall-back
  // fails too.
  if (fd == -EPERM) return open_beneath_by_steps(folder, path, flags);
  return fd;
}

long open_beneath_by_steps(int folder, const std::string& path, int extra) {
  OpenFile held;  // the current folder; empty: `folder`
  int at = folder;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t slash = path.find('/', begin);
    const std::string name = path.substr(begin, slash - begin);
    if (name == "..") return -EXDEV;
    const bool last = slash == std::string::npos;
    const int flags = last ? static_cast<int>(flags_for(extra)) | O_NOFOLLOW
                           : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const long fd = blocking_syscall(SYS_openat, at, name.c_str(), flags, 0);
    if (fd < 0 || last) return fd;
    held = OpenFile(static_cast<int>(fd));
    at = held.fd();
    begin = slash + 1;
  }
}

}  // namespace tuza::http
