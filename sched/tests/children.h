// Parts of a test that need a process of their own.
#pragma once

#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace tuza::testing {

// How a child of fork() ended, and what it wrote to standard error.
struct Ended {
  int status = -1;
  std::string said;

  [[nodiscard]] bool with_code(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  [[nodiscard]] bool by_signal(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
  [[nodiscard]] bool said_this(const char* text) const { return said.find(text) != std::string::npos; }
};

// After so long SIGALRM ends a child that hangs. It is no bound on what a child does: a machine may be very slow.
constexpr unsigned kChildSecondsMax = 300;

// Forks; the child calls `body` with standard error in a pipe, and exits with status 7 if `body` returns.
// Blocks until the child has ended.
inline Ended in_fork(const std::function<void()>& body) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kChildSecondsMax);
    ::dup2(ends[1], 2);
    ::close(ends[0]);
    ::close(ends[1]);
    body();
    ::_exit(7);
  }
  ::close(ends[1]);
  Ended ended;
  char text[512];
  for (ssize_t n = 0; (n = ::read(ends[0], text, sizeof text)) > 0;)
    ended.said.append(text, static_cast<std::size_t>(n));
  ::close(ends[0]);
  while (child > 0 && ::waitpid(child, &ended.status, 0) != child) {
  }
  return ended;
}

// The threads of this process whose names begin with `prefix`, by thread number.
inline std::set<std::string> threads_named(std::string_view prefix) {
  std::set<std::string> found;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* entry = ::readdir(tasks)) {
    std::ifstream comm("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string name;
    if (comm >> name && name.starts_with(prefix)) found.insert(entry->d_name);
  }
  ::closedir(tasks);
  return found;
}

// True if the kernel runs the thread of this process on a core, or has it waiting for one.
inline bool on_a_core(long thread_id) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread_id) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'R';
}

// From now on, this process may have so much more address space than it has (`ulimit -v`).
inline void limit_address_space(std::size_t more_bytes) {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  const rlimit limit{pages * 4096 + more_bytes, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
}

}  // namespace tuza::testing
