#include <tuza/netpoll/directory.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/netpoll/files/directory_reader.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/sched/arch/calls.h>

#include <cstring>
#include <utility>

namespace tuza {

struct Directory::State {
  State(int fd, std::string name) : reader(fd), path(std::move(name)) {}

  FileType type_of(const char* name, unsigned char d_type) const;

  detail::DirectoryReader reader;
  const std::string path;
};

FileType Directory::State::type_of(const char* name, unsigned char d_type) const {
  if (d_type != DT_UNKNOWN) return detail::file_type(static_cast<std::uint32_t>(DTTOIF(d_type)));
  // Some file systems do not report the type.
  struct stat info{};
  if (detail::blocking_syscall(sys::fstatat, reader.fd(), name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
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
    detail::DirectoryReader::Entry entry;
    if (const long error = state->reader.next(entry); error < 0) {
      return std::unexpected(detail::file_error(error, "list", state->path));
    }
    if (entry.name == nullptr) return std::nullopt;
    if (std::strcmp(entry.name, ".") == 0 || std::strcmp(entry.name, "..") == 0) continue;
    return DirectoryEntry{.name = entry.name, .type = state->type_of(entry.name, entry.d_type)};
  }
}

}  // namespace tuza
