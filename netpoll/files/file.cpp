#include <tuza/netpoll/file.h>
#include <tuza/sched/arch/calls.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/netpoll/poll/fd_mutex.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

namespace tuza {

using detail::blocking_syscall;
using detail::check_call;
using detail::file_error;
using Side = net::FdMutex::Side;

// Exists until the File is destroyed and its descriptor is closed, whichever comes last: a call may still be
// under way when the File is destroyed.
struct File::State {
  State(int number, std::string name) : fd(number), path(std::move(name)) {}

  const int fd;
  const std::string path;
  net::FdMutex users;
  std::atomic<int> holders{2};  // the File, and the open descriptor

  // Called by the user that drops the last reference of a closed file. Returns -errno. Deletes this object if
  // it has no other holder.
  long close_number() {
    const long result = blocking([number = fd] { return sys::close(number); });
    drop_holder();
    return result == -EINTR ? 0 : result;  // Linux has closed the descriptor all the same
  }
  void drop_holder() {
    // acq_rel: the other holder's accesses to the state happen before its deletion.
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

void File::Dispose::operator()(State* state) const {
  if (state->users.close() && state->users.release()) state->close_number();
  state->drop_holder();
}

// A scoped reference that keeps the descriptor open, with or without the lock of a side. False if the file is
// closed.
class File::Use {
 public:
  explicit Use(State* state) : state_(state), ok_(state != nullptr && state->users.acquire()) {}
  Use(State* state, Side side)
      : state_(state), side_(side), locks_(true), ok_(state != nullptr && state->users.lock(side)) {}
  ~Use() {
    if (ok_ && (locks_ ? state_->users.unlock(side_) : state_->users.release())) state_->close_number();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return ok_; }

 private:
  State* const state_;
  const Side side_ = Side::kRead;
  const bool locks_ = false;
  const bool ok_;
};

namespace {

std::optional<int> flags_of(const OpenOptions& options) {
  const bool write = options.write || options.append;
  if ((!options.read && !write) || (options.truncate && !write)) return std::nullopt;
  int flags = write ? (options.read ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (options.append) flags |= O_APPEND;
  if (options.truncate) flags |= O_TRUNC;
  if (options.create || options.exclusive) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  return flags;
}

// A system call that reads or writes. An adopted descriptor may be one that does not block (O_NONBLOCK belongs to all
// processes that share it, so it stays), and is waited for.
template <class Call, class... Args>
long when_ready(short events, Call call, int fd, Args... args) {
  for (;;) {
    const long result = blocking_syscall(call, fd, args...);
    if (result != -EAGAIN) return result;
    struct pollfd wanted{.fd = fd, .events = events, .revents = 0};
    const long ready = blocking_syscall(sys::poll, &wanted, 1u, nullptr);
    if (ready < 0) return ready;
  }
}

// Writes all of `data` with repeated calls of `write(at, bytes)`, a system call that may write only a part.
template <class Write>
Result<void> write_in_pieces(std::span<const std::byte> data, std::string_view op, const std::string& path,
                             Write write) {
  std::size_t done = 0;
  while (done < data.size()) {
    const long n = write(data.data() + done, data.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
      continue;
    }
    std::string subject = path;
    if (done > 0) {
      subject += " (" + std::to_string(done) + " of " + std::to_string(data.size()) + " bytes written)";
    }
    return std::unexpected(file_error(n == 0 ? -EIO : n, op, subject));
  }
  return {};
}

}  // namespace

File::File(std::unique_ptr<State, Dispose> state) : state_(std::move(state)) {}
File::File() = default;
File::File(File&&) noexcept = default;
// Close the old file before the pointer to it is overwritten: threads lost in a call have read that pointer.
File& File::operator=(File&& other) noexcept {
  std::unique_ptr<State, Dispose> taken = std::move(other.state_);
  if (state_) state_.get_deleter()(state_.get());
  (void)state_.release();
  state_ = std::move(taken);
  return *this;
}
File::~File() = default;

Result<File> File::open(std::string_view path, const OpenOptions& options) {
  Result<std::string> name = detail::kernel_path(path, "open");
  if (!name) return std::unexpected(name.error());
  const std::optional<int> flags = flags_of(options);
  if (!flags) return std::unexpected(file_error(-EINVAL, "open", path));
  const Result<int> fd = detail::open_path(*name, *flags, options.mode);
  if (!fd) return std::unexpected(fd.error());
  return File(std::unique_ptr<State, Dispose>(new State(*fd, std::move(*name))));
}

Result<File> File::adopt(int fd, std::string_view name) {
  const long flags = sys::fcntl(fd, F_GETFD, 0);
  if (flags < 0) return std::unexpected(file_error(flags, "adopt", name));
  return File(std::unique_ptr<State, Dispose>(new State(fd, std::string(name))));
}

Result<File> File::create(std::string_view path, std::uint32_t mode) {
  return open(path, {.write = true, .create = true, .truncate = true, .mode = mode});
}

Error File::closed_error(std::string_view op) const { return Error(Errc::kClosed, op, std::string(path())); }

File::Number::Number(const File& file) : state_(file.state_.get()) {
  if (state_ != nullptr && !state_->users.acquire()) state_ = nullptr;
}
File::Number::~Number() {
  if (state_ != nullptr && state_->users.release()) state_->close_number();
}
int File::Number::fd() const { return state_ != nullptr ? state_->fd : -1; }

std::string_view File::path() const { return state_ ? std::string_view(state_->path) : std::string_view(); }

Result<std::size_t> File::read(std::span<std::byte> into) {
  State* const state = state_.get();
  const Use use(state, Side::kRead);
  if (!use) return std::unexpected(closed_error("read"));
  const long n = when_ready(POLLIN, sys::read, state->fd, into.data(), into.size());
  if (n < 0) return std::unexpected(file_error(n, "read", state->path));
  return static_cast<std::size_t>(n);
}

Result<std::string> File::read_all(std::size_t bytes_max) {
  constexpr std::size_t kChunk = 8192;  // for files that do not report their size: pipes, /proc
  State* const state = state_.get();
  const Use use(state, Side::kRead);
  if (!use) return std::unexpected(closed_error("read"));
  // One byte more than is allowed, so that the last read finds either the end or an excess byte.
  const std::size_t room = std::min(bytes_max, std::string().max_size() - 1) + 1;
  std::size_t length = kChunk;
  struct stat info{};
  if (blocking_syscall(sys::fstat, state->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    length = static_cast<std::size_t>(info.st_size) + 1;
  }
  std::string text(std::min(length, room), '\0');
  for (std::size_t filled = 0; filled < room;) {
    if (filled == text.size()) text.resize(std::min(2 * filled, room));
    const long n = when_ready(POLLIN, sys::read, state->fd, text.data() + filled, text.size() - filled);
    if (n < 0) return std::unexpected(file_error(n, "read", state->path));
    if (n == 0) {
      text.resize(filled);
      return text;
    }
    filled += static_cast<std::size_t>(n);
  }
  return std::unexpected(file_error(-EFBIG, "read", state->path));
}

Result<void> File::write_all(std::span<const std::byte> data) {
  State* const state = state_.get();
  const Use use(state, Side::kWrite);
  if (!use) return std::unexpected(closed_error("write"));
  return write_in_pieces(data, "write", state->path, [fd = state->fd](const std::byte* at, std::size_t n) {
    return when_ready(POLLOUT, sys::write, fd, at, n);
  });
}

Result<std::size_t> File::pread(std::span<std::byte> into, std::uint64_t offset) {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("pread"));
  const long n = detail::read_at(state->fd, {reinterpret_cast<char*>(into.data()), into.size()}, offset);
  if (n < 0) return std::unexpected(file_error(n, "pread", state->path));
  return static_cast<std::size_t>(n);
}

Result<void> File::pwrite_all(std::span<const std::byte> data, std::uint64_t offset) {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("pwrite"));
  return write_in_pieces(data, "pwrite", state->path,
                         [fd = state->fd, &data, offset](const std::byte* at, std::size_t n) {
                           const auto done = static_cast<std::uint64_t>(at - data.data());
                           return blocking_syscall(sys::pwrite, fd, at, n, offset + done);
                         });
}

Result<std::uint64_t> File::seek(std::int64_t offset_bytes, Whence whence) {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("seek"));
  const int from = whence == Whence::kBegin ? SEEK_SET : whence == Whence::kCurrent ? SEEK_CUR : SEEK_END;
  // Blocks while another thread reads or writes at the position.
  const long position = blocking_syscall(sys::lseek, state->fd, offset_bytes, from);
  if (position < 0) return std::unexpected(file_error(position, "seek", state->path));
  return static_cast<std::uint64_t>(position);
}

Result<void> File::truncate(std::uint64_t size_bytes) {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("truncate"));
  return check_call(blocking_syscall(sys::ftruncate, state->fd, size_bytes), "truncate", state->path);
}

Result<void> File::sync() {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("sync"));
  return check_call(blocking_syscall(CallLength::kLong, sys::fsync, state->fd), "sync", state->path);
}

Result<void> File::sync_data() {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("sync"));
  return check_call(blocking_syscall(CallLength::kLong, sys::fdatasync, state->fd), "sync", state->path);
}

Result<FileInfo> File::stat() {
  State* const state = state_.get();
  const Use use(state);
  if (!use) return std::unexpected(closed_error("stat"));
  struct stat info{};
  const long result = blocking_syscall(sys::fstat, state->fd, &info);
  if (result < 0) return std::unexpected(file_error(result, "stat", state->path));
  return detail::file_info(info);
}

Result<void> File::close() {
  State* const state = state_.get();
  if (state == nullptr || !state->users.close()) return std::unexpected(closed_error("close"));
  if (!state->users.release()) return {};
  return check_call(state->close_number(), "close", state->path);  // this File still holds the state
}

}  // namespace tuza
