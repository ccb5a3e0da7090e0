#include <tuza/netpoll/socket/unix_socket.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/new_socket.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/sync/context.h>

#include <time.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

namespace tuza::net {
namespace {

bool read_status(const std::string& path, struct stat& found) {
  return sys::fstatat(AT_FDCWD, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
}

long remove_file(const std::string& path) { return sys::unlinkat(AT_FDCWD, path.c_str(), 0); }

// Setting up a socket, from the check of an old file to listen(), holds a lock. Without it, of two processes that start at
// once, the second would take the first's file for a leftover, because the first does not listen yet.
//
// The lock is on a file beside the socket that only this user can open, and that exists only meanwhile: the holder removes
// it before it releases the lock, and who gets the lock of a file that is no longer there begins again. (A lock on the
// folder, or on a file that others may read, could be kept by any user of the machine.) If the file cannot be made, or is
// somebody else's, or if its holder takes too long, there is no protection: a server that starts is worth more.
class StartLock {
 public:
  // Waits until `ctx` ends, at the longest.
  StartLock(const std::string& socket, const Context& ctx) : path_(socket + ".tuza-lock") {
    const struct timespec pause{0, std::chrono::nanoseconds(kPause).count()};
    const auto deadline =
        std::chrono::steady_clock::now() + kPatience;  // a pause may take longer than kPause
    do {
      if (fd_ < 0 && !open_file()) return;
      const long error = sys::flock(fd_, LOCK_EX | LOCK_NB);
      if (error == 0 && is_still_there()) return;
      if (error != 0 && error != -EAGAIN && error != -EINTR) {
        remove_file(path_);  // nobody can lock it, on this file system
        break;
      }
      if (error == 0) {
        close_file();
        continue;
      }
      sys::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    } while (std::chrono::steady_clock::now() < deadline && !ctx.done());
    close_file();
  }
  ~StartLock() {
    if (fd_ < 0) return;
    remove_file(path_);
    close_file();
  }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;

 private:
  static constexpr std::chrono::milliseconds kPatience{2000}, kPause{10};

  bool open_file() {
    constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    fd_ = sys::openat(AT_FDCWD, path_.c_str(), kFlags, 0600);
    if (fd_ < 0) return false;
    struct stat own{};
    const bool ours =
        status(own) && S_ISREG(own.st_mode) && (own.st_mode & 0077) == 0 && own.st_uid == sys::geteuid();
    if (!ours) close_file();
    return ours;
  }
  [[nodiscard]] bool status(struct stat& own) const { return sys::fstat(fd_, &own) == 0; }
  [[nodiscard]] bool is_still_there() const {
    struct stat own{}, there{};
    return status(own) && read_status(path_, there) && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
  }
  void close_file() {
    if (fd_ >= 0) sys::close(std::exchange(fd_, -1));
  }

  const std::string path_;
  long fd_ = -1;
};

// True if the file is a socket on which nobody listens.
bool is_left_behind(const std::string& path, const SocketName& name) {
  struct stat found{};
  if (!read_status(path, found) || !S_ISSOCK(found.st_mode)) return false;
  const NewSocket probe(AF_UNIX, 0);
  return probe.fd() >= 0 && sys::connect(probe.fd(), name.address(), name.length) == -ECONNREFUSED;
}

// 0 or -errno.
long bind_and_listen(const NewSocket& socket, const std::string& path, const SocketName& name, int backlog) {
  const bool has_file = path.front() != '@';
  const auto bind = [&] { return sys::bind(socket.fd(), name.address(), name.length); };
  long error = bind();
  if (error == -EADDRINUSE && has_file && is_left_behind(path, name)) {
    error = remove_file(path);
    if (error == 0 || error == -ENOENT) error = bind();
  }
  return error != 0 ? error : sys::listen(socket.fd(), backlog);
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

Result<Listener> listen_unix(const Context& ctx, std::string_view path, int backlog) {
  const auto fail = [&](int number) {
    return std::unexpected(Error::from_errno(number, "listen", "unix:" + std::string(path)));
  };
  const std::optional<SocketName> name = SocketName::of_path(path);
  if (!name) return fail(path.empty() || path.find('\0') != path.npos ? EINVAL : ENAMETOOLONG);
  NewSocket socket(AF_UNIX, 0);
  if (socket.fd() < 0) return fail(static_cast<int>(-socket.fd()));
  const std::string file(path);
  detail::UnixSocketFileOwner owner;
  const long error = blocking([&]() -> long {
    std::optional<StartLock> lock;
    if (file.front() != '@') lock.emplace(file, ctx);
    if (ctx.done()) return -ECANCELED;
    const long result = bind_and_listen(socket, file, *name, backlog);
    if (result == 0 && file.front() != '@') owner.reset(new UnixSocketFile(file));
    return result;
  });
  if (error == -ECANCELED) return std::unexpected(ctx.cause());
  if (error != 0) return fail(static_cast<int>(-error));
  Result<Descriptor*> descriptor = Descriptor::open(socket.release(), "listen");
  if (!descriptor) return std::unexpected(descriptor.error());
  Listener listener(detail::DescriptorOwner(*descriptor), Endpoint(), name->text());
  listener.file_ = std::move(owner);
  return listener;
}

}  // namespace tuza::net
