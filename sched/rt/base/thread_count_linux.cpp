#include <tuza/sched/rt/base/small_file.h>
#include <tuza/sched/rt/base/thread_count.h>

#include <array>
#include <charconv>
#include <string_view>

namespace tuza::rt {

// The kernel's count drops when a thread is gone, except for the first thread of the process, which stays in it.
std::int64_t count_threads() {
  std::array<char, 512> buffer;
  // "123 (name) S 1 ...": the state is the third field, the number of threads the twentieth.
  std::string_view stat = read_small_file("/proc/self/stat", buffer);
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  stat.remove_prefix(name_end + 1);
  const bool first_has_ended = stat.starts_with(" Z");
  for (int field = 3; field < 20; ++field) {
    const std::size_t end = stat.find(' ', 1);
    if (end == std::string_view::npos) return 0;
    stat.remove_prefix(end);
  }
  std::int64_t threads = 0;
  const char* const end = stat.data() + stat.size();
  if (std::from_chars(stat.data() + 1, end, threads).ec != std::errc{}) return 0;
  return first_has_ended ? threads - 1 : threads;
}

}  // namespace tuza::rt
