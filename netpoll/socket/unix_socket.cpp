#include <tuza/netpoll/socket/unix_socket.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/new_socket.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/sched/blocking.h>

#include <time.h>

#include <cerrno>
#include <chrono>

namespace tuza::net {
namespace {

// Setting up a socket, from the check of an old file to listen(), holds a lock on the folder of the file.
// Without the lock, of two processes that start at once, the second would take the first's file for a
// leftover, because the first does not listen yet. A folder that cannot be read cannot be locked either; then
// there is no protection. Any process that can read the folder can take the lock, so the wait for it is
// limited.
constexpr std::chrono::milliseconds kLockTime{2000}, kLockPause{10};

class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    fd_ = sys::invoke(SYS_openat, AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) return;
    const struct timespec pause{0, std::chrono::nanoseconds(kLockPause).count()};
    for (auto waited = kLockPause * 0;; waited += kLockPause) {
      const long error = sys::invoke(SYS_flock, fd_, LOCK_EX | LOCK_NB);
      refused_ = error == -EAGAIN;
      if ((!refused_ && error != -EINTR) || waited >= kLockTime) return;
      sys::invoke(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
  }
  ~FolderLock() {
    if (fd_ >= 0) sys::invoke(SYS_close, fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // True if another process holds the lock, and did not release it in time.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  long fd_ = -1;
  bool refused_ = false;
};

bool read_status(const std::string& path, struct stat& found) {
  return sys::invoke(SYS_newfstatat, AT_FDCWD, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
}

// True if the file is a socket on which nobody listens.
bool is_left_behind(const std::string& path, const SocketName& name) {
  struct stat found{};
  if (!read_status(path, found) || !S_ISSOCK(found.st_mode)) return false;
  const NewSocket probe(AF_UNIX, 0);
  return probe.fd() >= 0 &&
         sys::invoke(SYS_connect, probe.fd(), name.address(), name.length) == -ECONNREFUSED;
}

long remove_file(const std::string& path) { return sys::invoke(SYS_unlinkat, AT_FDCWD, path.c_str(), 0); }

// 0 or -errno.
long bind_and_listen(const NewSocket& socket, const std::string& path, const SocketName& name, int backlog) {
  const bool has_file = path.front() != '@';
  const auto bind = [&] { return sys::invoke(SYS_bind, socket.fd(), name.address(), name.length); };
  long error = bind();
  if (error == -EADDRINUSE && has_file && is_left_behind(path, name)) {
    error = remove_file(path);
    if (error == 0 || error == -ENOENT) error = bind();
  }
  return error != 0 ? error : sys::invoke(SYS_listen, socket.fd(), backlog);
}

}  // namespace

UnixSocketFile::UnixSocketFile(std::string path) : path_(std::move(path)) {
  struct stat found{};
  if (!read_status(path_, found)) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

void UnixSocketFile::remove() {
  if (removed_.exchange(true)) return;
  struct stat found{};
  if (read_status(path_, found) && found.st_dev == device_ && found.st_ino == inode_) remove_file(path_);
}

void detail::Dispose::operator()(UnixSocketFile* file) const { delete file; }

Result<Listener> listen_unix(std::string_view path, int backlog) {
  const auto fail = [&](int number) {
    return std::unexpected(Error::from_errno(number, "listen", "unix:" + std::string(path)));
  };
  const std::optional<SocketName> name = SocketName::of_path(path);
  if (!name) return fail(path.empty() || path.find('\0') != path.npos ? EINVAL : ENAMETOOLONG);
  NewSocket socket(AF_UNIX, 0);
  if (socket.fd() < 0) return fail(static_cast<int>(-socket.fd()));
  const std::string file(path);
  detail::UnixSocketFileOwner owner;
  bool locked_out = false;
  const long error = blocking([&]() -> long {
    std::optional<FolderLock> lock;
    if (file.front() != '@') lock.emplace(file);
    locked_out = lock && lock->refused();
    if (locked_out) return -EAGAIN;
    const long result = bind_and_listen(socket, file, *name, backlog);
    if (result == 0 && file.front() != '@') owner.reset(new UnixSocketFile(file));
    return result;
  });
  if (locked_out) {
    return std::unexpected(Error::from_errno(
        EAGAIN, "listen", "unix:" + file + " (another process holds the flock(2) lock of its folder)"));
  }
  if (error != 0) return fail(static_cast<int>(-error));
  Result<Descriptor*> descriptor = Descriptor::open(socket.release(), "listen");
  if (!descriptor) return std::unexpected(descriptor.error());
  Listener listener(detail::DescriptorOwner(*descriptor), Endpoint(), name->text());
  listener.file_ = std::move(owner);
  return listener;
}

}  // namespace tuza::net
