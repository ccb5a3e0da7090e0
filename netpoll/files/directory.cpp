#include <tuza/netpoll/directory.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuza/netpoll/files/file_calls.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tuza {

struct Directory::State {
  State(int number, std::string name) : fd(number), path(std::move(name)) {}
  ~State() {
    blocking([number = fd] { return sys::invoke(SYS_close, number); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  FileType type_of(const char* name, unsigned char d_type) const;

  const int fd;
  const std::string path;
  std::array<char, 32768> buffer;  // about 1,000 entries per system call
  std::size_t filled = 0;          // bytes in the buffer
  std::size_t at = 0;              // the next entry
};

FileType Directory::State::type_of(const char* name, unsigned char d_type) const {
  if (d_type != DT_UNKNOWN) return detail::file_type(static_cast<std::uint32_t>(DTTOIF(d_type)));
  // Some file systems do not report the type.
  struct stat info{};
  if (detail::blocking_syscall(SYS_newfstatat, fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
    return FileType::kUnknown;
  }
  return detail::file_type(info.st_mode);
}

Directory::Directory(std::unique_ptr<State> state) : state_(std::move(state)) {}
Directory::Directory(Directory&&) noexcept = default;
Directory& Directory::operator=(Directory&&) noexcept = default;
Directory::~Directory() = default;

Result<Directory> Directory::open(std::string_view path) {
  Result<std::string> name = detail::kernel_path(path, "open");
  if (!name) return std::unexpected(name.error());
  const Result<int> fd = detail::open_path(*name, O_RDONLY | O_DIRECTORY, 0);
  if (!fd) return std::unexpected(fd.error());
  return Directory(std::make_unique<State>(*fd, std::move(*name)));
}

Directory Directory::adopt(int fd, std::string_view path) {
  return Directory(std::make_unique<State>(fd, std::string(path)));
}

Result<std::optional<DirectoryEntry>> Directory::next() {
  State* const state = state_.get();
  if (state == nullptr) return std::unexpected(Error(Errc::kClosed, "list"));
  for (;;) {
    if (state->at == state->filled) {
      const long n =
          detail::blocking_syscall(SYS_getdents64, state->fd, state->buffer.data(), state->buffer.size());
      if (n < 0) return std::unexpected(detail::file_error(n, "list", state->path));
      if (n == 0) return std::nullopt;
      state->filled = static_cast<std::size_t>(n);
      state->at = 0;
    }
    // The kernel writes records of struct dirent64, aligned to eight bytes and only as long as the name
    // requires.
    const char* const record = state->buffer.data() + state->at;
    decltype(dirent64::d_reclen) length = 0;
    std::memcpy(&length, record + offsetof(struct dirent64, d_reclen), sizeof length);
    state->at += length;
    const char* const name = record + offsetof(struct dirent64, d_name);
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
    const auto d_type = static_cast<unsigned char>(record[offsetof(struct dirent64, d_type)]);
    return DirectoryEntry{.name = name, .type = state->type_of(name, d_type)};
  }
}

}  // namespace tuza
