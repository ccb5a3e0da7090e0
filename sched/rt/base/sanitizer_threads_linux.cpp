#include <tuza/sched/rt/base/sanitizer_threads.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/small_file.h>
#include <tuza/sched/rt/base/thread_state.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace tuza::rt {
namespace {

bool blocks_all_signals(std::int32_t thread_id) {
  constexpr std::string_view kField = "\nSigBlk:\t";
  Line path(Line::kNowhere);
  path << "/proc/self/task/" << thread_id << "/status" << '\0';
  std::array<char, 4096> buffer;
  std::string_view status = read_small_file(path.text().data(), buffer);
  const std::size_t at = status.find(kField);
  if (at == std::string_view::npos) return false;
  status.remove_prefix(at + kField.size());
  std::uint64_t blocked = 0;
  std::from_chars(status.data(), status.data() + status.size(), blocked, 16);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGTERM}) {
    if ((blocked >> (fault - 1) & 1) == 0) return false;
  }
  return true;
}

bool sleeps(std::int32_t thread_id) { return waiting_call(thread_id).number == SYS_nanosleep; }

// Calls `f` with the id of each thread of the process; may miss threads while others end.
template <class F>
void for_each_thread(F&& f) {
  const long fd = sys::invoke(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(std::uint64_t) std::array<char, 4096> entries;
  for (;;) {
    const long size = sys::invoke(SYS_getdents64, fd, entries.data(), entries.size());
    if (size <= 0) break;
    // getdents64(2): inode and offset, 8 bytes each, the length of the entry, 2 bytes, a type of 1 byte, the name.
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      std::uint16_t length = 0;
      std::memcpy(&length, entries.data() + at + 16, sizeof length);
      const char* const name = entries.data() + at + 19;
      std::int32_t thread_id = 0;
      if (std::from_chars(name, name + std::strlen(name), thread_id).ec == std::errc{}) f(thread_id);
      at += length;
    }
  }
  sys::invoke(SYS_close, fd);
}

}  // namespace

std::int64_t sanitizer_threads() {
  if constexpr (!kTsan && !kAsan) return 0;
  std::int64_t count = 0;
  for_each_thread([&count](std::int32_t id) { count += blocks_all_signals(id) && sleeps(id) ? 1 : 0; });
  return count;
}

}  // namespace tuza::rt
