#include <tuza/sched/rt/base/thread_state.h>

#include <sys/syscall.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/small_file.h>

#include <charconv>
#include <string_view>

namespace tuza::rt {
namespace {

// The first bytes of a file in /proc about a thread.
class Text {
 public:
  std::string_view read(std::int32_t thread_id, std::string_view file) {
    Line path(Line::kNowhere);
    path << "/proc/self/task/" << thread_id << '/' << file << '\0';
    return read_small_file(path.text().data(), bytes_);
  }

 private:
  char bytes_[256];
};

// '?' if /proc cannot tell.
char state_of(std::int32_t thread_id) {
  Text text;
  // "123 (name) R ...": the name may contain any character, but is shorter than the buffer.
  const std::string_view stat = text.read(thread_id, "stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) return '?';
  return stat[name_end + 2];
}

}  // namespace

bool thread_is_runnable(std::int32_t thread_id, bool unknown) {
  const char state = state_of(thread_id);
  return state == '?' ? unknown : state == 'R';
}

bool is_call_on_file(std::string_view line) {
  long number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') return false;
  // Not write(): a signal could cut a write to a pipe or a socket short.
  for (const long one :
       {-1L, long{SYS_read}, long{SYS_readv}, long{SYS_pread64}, long{SYS_preadv}, long{SYS_pwrite64},
        long{SYS_pwritev}, long{SYS_fsync}, long{SYS_fdatasync}, long{SYS_fadvise64}}) {
    if (number == one) return true;
  }
  return false;
}

bool thread_waits_for_disk(std::int32_t thread_id) {
  // Read the state again: between the first two reads the thread may have entered a call of another kind.
  return state_of(thread_id) == 'D' && is_call_on_file(Text().read(thread_id, "syscall")) &&
         state_of(thread_id) == 'D';
}

WaitingCall waiting_call(std::int32_t thread_id) {
  // "202 0x7f12a4000030 0x80 ... 0x7ffc4d3f0e58 0x7f12a3d1b6a9": the number, and at the end the instruction pointer.
  // A thread that runs is only called "running".
  Text text;
  std::string_view line = text.read(thread_id, "syscall");
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  const std::size_t last = line.rfind(" 0x");
  WaitingCall found;
  if (last == std::string_view::npos) return found;
  std::from_chars(line.data(), line.data() + last, found.number);
  std::from_chars(line.data() + last + 3, line.data() + line.size(), found.at, 16);
  return found;
}

std::uintptr_t futex_waited_for(std::int32_t thread_id) {
  // "202 0x7f12a4000030 0x80 ...": the number of the call and its arguments.
  Text text;
  const std::string_view line = text.read(thread_id, "syscall");
  long number = 0;
  const char* const end = line.data() + line.size();
  const auto [after, error] = std::from_chars(line.data(), end, number);
  if (error != std::errc{} || number != SYS_futex || end - after < 4) return 0;
  std::uintptr_t address = 0;
  std::from_chars(after + 3, end, address, 16);
  return address;
}

}  // namespace tuza::rt
