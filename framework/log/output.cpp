#include <tuza/framework/log/output.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <tuza/sched/arch/calls.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace tuza::logging {
namespace {

// A pipe that reports room accepts this many bytes without blocking, and writes them atomically (PIPE_BUF).
constexpr std::size_t kPieceBytes = 4096;
constexpr long kPatienceNs = 100'000'000;

// Returns a descriptor. O_NONBLOCK is set only during the open, where a FIFO would wait for its reader.
Result<int> open_for_append(const std::string& path, int create = O_CREAT) {
  const int flags = O_WRONLY | O_APPEND | create | O_CLOEXEC | O_NOCTTY;
  const long fd = sys::openat(AT_FDCWD, path.c_str(), flags | O_NONBLOCK, 0640);
  if (fd < 0) {
    struct stat info{};
    const bool fifo = fd == -ENXIO && stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
    return std::unexpected(Error::from_errno(static_cast<int>(-fd), "log file",
                                             fifo ? path + ", a FIFO without a reader" : path));
  }
  sys::fcntl(fd, F_SETFL, O_APPEND);
  return static_cast<int>(fd);
}

bool is_regular(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

bool is_same_file(int a, int b) {
  struct stat one{}, other{};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

Output::Output(int fd) : Output(fd, "") {}
Output::Output(int fd, std::string path) : fd_(fd), path_(std::move(path)), in_pieces_(!is_regular(fd)) {}
Output::Output(Output&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      in_pieces_(other.in_pieces_.load()),
      cut_off_(other.cut_off_) {}
Output::~Output() {
  if (!path_.empty() && fd_ >= 0) sys::close(fd_);
}

Result<void> Output::may_open(const std::string& path) {
  const Result<int> fd = open_for_append(path, 0);
  if (fd) {
    sys::close(*fd);
    return {};
  }
  if (fd.error().code() != std::errc::no_such_file_or_directory) return std::unexpected(fd.error());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const long allowed = sys::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK);
  if (allowed == 0) return {};
  return std::unexpected(Error::from_errno(static_cast<int>(-allowed), "log file", path));
}

Result<Output> Output::open(const std::string& path) {
  const Result<int> fd = open_for_append(path);
  if (!fd) return std::unexpected(fd.error());
  return Output(*fd, path);
}

Result<void> Output::reopen() {
  if (path_.empty()) return {};
  const Result<int> fd = open_for_append(path_);
  if (!fd) return std::unexpected(fd.error());
  const bool another = !is_same_file(*fd, fd_);
  // The descriptor number must not change: the writing thread may be using it.
  const long taken = sys::dup3(*fd, fd_, O_CLOEXEC);
  sys::close(*fd);
  if (taken < 0) return std::unexpected(Error::from_errno(static_cast<int>(-taken), "log file", path_));
  in_pieces_.store(!is_regular(fd_), std::memory_order_relaxed);
  if (another) reopened_.store(true, std::memory_order_release);
  return {};
}

std::size_t Output::write(std::string_view lines, const std::function<bool()>& patient) {
  std::string_view rest = lines;
  while (!rest.empty()) {
    if (!wait_for_room(patient)) break;
    if (reopened_.exchange(false, std::memory_order_acquire)) cut_off_ = false;
    if (cut_off_) {
      if (sys::write(fd_, "\n", 1) != 1) break;
      cut_off_ = false;
      continue;
    }
    const std::string_view piece = piece_of(rest);
    const long n = sys::write(fd_, piece.data(), piece.size());
    if (n == -EINTR || n == -EAGAIN) continue;
    if (n <= 0) break;  // ENOSPC, EFBIG, EPIPE
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  const std::size_t written = lines.size() - rest.size();
  // If the output ends within a line, the next write must end that line first, so that readers see whole lines again.
  if (written > 0 && !rest.empty()) cut_off_ = lines[written - 1] != '\n';
  return written;
}

bool Output::wait_for_room(const std::function<bool()>& patient) const {
  if (!in_pieces_.load(std::memory_order_relaxed)) return true;
  long wait_ns = 0;
  do {
    struct pollfd ask{.fd = fd_, .events = POLLOUT, .revents = 0};
    struct timespec left{.tv_sec = 0, .tv_nsec = std::exchange(wait_ns, kPatienceNs)};
    const long ready = sys::poll(&ask, 1, &left);
    if (ready > 0) return (ask.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
  } while (patient());
  return false;
}

// The next piece to write: as many whole lines as fit.
std::string_view Output::piece_of(std::string_view lines) const {
  if (!in_pieces_.load(std::memory_order_relaxed) || lines.size() <= kPieceBytes) return lines;
  const std::string_view piece = lines.substr(0, kPieceBytes);
  const std::size_t end = piece.rfind('\n');
  return end == std::string_view::npos ? piece : piece.substr(0, end + 1);
}

bool write_patiently(int fd, std::string_view text, int& tries) {
  const auto patient = [&tries] { return tries-- > 0; };
  return Output(fd).write(text, patient) == text.size();
}

}  // namespace tuza::logging
