// Helpers shared by the tests of child processes.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tuza/netpoll/process.h>
#include <tuza/netpoll/process/child_end.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/arch/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tuza::testing {

inline std::vector<std::string> shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }

// What a program prints; the error in angle brackets, or the status if it fails.
inline std::string printed(const std::vector<std::string>& command, ProcessOptions options = {}) {
  const Result<ProcessOutput> done = Process::output(command, std::move(options));
  if (!done) return "<" + done.error().message() + ">";
  return done->status.ok() ? done->out : "<" + done->status.message() + ": " + done->err + ">";
}

inline std::string read_some(PipeReader& from) {
  std::string text(100, '\0');
  const Result<std::size_t> n = from.read(std::span<char>(text));
  return n ? text.substr(0, *n) : "<" + n.error().message() + ">";
}

// No child is left, neither running nor as a zombie.
inline bool no_children() {
  siginfo_t info{};
  return sys::invoke(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, nullptr) == -ECHILD;
}

// Whether the end of a child is awaited through a descriptor. Otherwise a thread blocks for it.
inline bool has_pidfds() {
  const long fd = tuza::detail::open_pidfd(::getpid());
  if (fd >= 0) ::close(static_cast<int>(fd));
  return fd >= 0;
}

inline bool exists(int pid) { return ::kill(pid, 0) == 0; }

}  // namespace tuza::testing
