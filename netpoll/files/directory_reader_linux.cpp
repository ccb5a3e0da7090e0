#include <tuza/netpoll/files/directory_reader.h>

#include <dirent.h>
#include <sys/syscall.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/sched/arch/calls.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace tuza::detail {

struct DirectoryReader::State {
  const int fd;
  std::array<char, 32768> buffer;  // about 1,000 entries per system call
  std::size_t filled = 0;          // bytes in the buffer
  std::size_t at = 0;              // the next entry
};

namespace {

constexpr sys::Call<SYS_getdents64> getdents64;

}  // namespace

DirectoryReader::DirectoryReader(int fd) : state_(new State{.fd = fd, .buffer = {}}) {}

DirectoryReader::~DirectoryReader() {
  blocking([fd = state_->fd] { return sys::close(fd); });
}

int DirectoryReader::fd() const { return state_->fd; }

long DirectoryReader::next(Entry& entry) {
  entry = {};
  State& state = *state_;
  if (state.at == state.filled) {
    const long n = blocking_syscall(getdents64, state.fd, state.buffer.data(), state.buffer.size());
    if (n <= 0) return n;
    state.filled = static_cast<std::size_t>(n);
    state.at = 0;
  }
  // The kernel writes records of struct dirent64, aligned to eight bytes and only as long as the name
  // requires.
  const char* const record = state.buffer.data() + state.at;
  decltype(dirent64::d_reclen) length = 0;
  std::memcpy(&length, record + offsetof(struct dirent64, d_reclen), sizeof length);
  state.at += length;
  entry.name = record + offsetof(struct dirent64, d_name);
  entry.d_type = static_cast<unsigned char>(record[offsetof(struct dirent64, d_type)]);
  return 0;
}

}  // namespace tuza::detail
