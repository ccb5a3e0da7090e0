#include <tuza/netpoll/files/directory_reader.h>

#include <dirent.h>
#include <sys/stat.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/last_error.h>

#include <cerrno>

namespace tuza::detail {

struct DirectoryReader::State {
  const int fd;
  DIR* stream = nullptr;  // which owns the descriptor; null: nothing has been read yet
};

DirectoryReader::DirectoryReader(int fd) : state_(new State{.fd = fd}) {}

DirectoryReader::~DirectoryReader() {
  blocking([state = state_.get()] {
    if (state->stream == nullptr) return sys::close(state->fd);
    return static_cast<long>(::closedir(state->stream));
  });
}

int DirectoryReader::fd() const { return state_->fd; }

namespace {

// At the end of a folder: some C libraries hide the error that the system has for one that was removed.
long end_of(int fd) {
  struct stat info{};
  const long error = sys::fstat(fd, &info);
  return error == 0 && info.st_nlink == 0 ? -ENOENT : error;
}

}  // namespace

// errno is read inside the call: its goroutine does not change its thread there.
long DirectoryReader::next(Entry& entry) {
  entry = {};
  return blocking([&entry, &state = *state_]() -> long {
    if (state.stream == nullptr && (state.stream = ::fdopendir(state.fd)) == nullptr) return -last_error();
    set_last_error(0);
    const struct dirent* const found = ::readdir(state.stream);
    if (found == nullptr) return last_error() != 0 ? -last_error() : end_of(state.fd);
    entry = {.name = found->d_name, .d_type = found->d_type};
    return 0;
  });
}

}  // namespace tuza::detail
