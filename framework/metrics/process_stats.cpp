#include <tuza/framework/metrics/process_stats.h>

#include <sys/resource.h>
#include <tuza/sched/blocking.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

namespace tuza {
namespace {

std::optional<double> cpu_seconds() {
  struct timespec spent{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0) return std::nullopt;
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

std::optional<std::uint64_t> count_fds(const std::string& proc) {
  std::error_code error;
  std::uint64_t n = 0;
  for (std::filesystem::directory_iterator one(proc + "/self/fd", error), end; !error && one != end; ++n) {
    one.increment(error);
  }
  if (error || n == 0) return std::nullopt;
  return n - 1;  // not counting the descriptor of the directory itself
}

// The start of the process: the kernel reports it in clock ticks since boot, and the time of the boot separately.
std::optional<double> start_seconds(const std::string& proc) {
  std::string word;
  double booted = 0;
  for (std::ifstream stat(proc + "/stat"); stat >> word;) {
    if (word == "btime" && stat >> booted) break;
  }
  std::ifstream own(proc + "/self/stat");
  std::getline(own, word, '\0');
  // The name in parentheses may contain any character. After it, field 3 is the state, and field 22 the start time.
  std::size_t at = word.rfind(')');
  if (at == std::string::npos || booted == 0) return std::nullopt;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = word.find(' ', at + 1);
  if (at == std::string::npos) return std::nullopt;
  return booted + std::strtod(word.c_str() + at + 1, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessStats process_stats(const std::string& proc) {
  return blocking([&proc] {
    ProcessStats stats;
    stats.cpu_seconds = cpu_seconds();
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::uint64_t pages = 0, resident = 0;
    if (std::ifstream(proc + "/self/statm") >> pages >> resident) {
      stats.virtual_bytes = pages * page;
      stats.resident_bytes = resident * page;
    }
    stats.open_fds = count_fds(proc);
    struct rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      stats.max_fds = limit.rlim_cur;
    stats.start_seconds = start_seconds(proc);
    return stats;
  });
}

}  // namespace tuza
