// Public header, part of <tuza/net.h>.
//
// Child processes: programs that run beside this one, and end with a Context.
//
//     auto listed = tuza::Process::output(ctx, {"git", "ls-files"}, {.folder = "/srv/repository"});
//     if (!listed) return std::unexpected(listed.error());     // "start git: No such file or directory"
//     if (!listed->status.ok()) return std::unexpected(tuza::errorf("git: {}", listed->err));
//
//     auto sort = tuza::Process::start(ctx, {"sort"}, {.in = Stdio::pipe(), .out = Stdio::pipe()});
//
// Starting. The program is looked up in PATH, as execvp does, if its name has no slash; there is no shell. It begins with
// the default action for each signal, with no signal blocked, and with no descriptors but 0, 1 and 2. What the kernel
// refuses is the error of start(): ENOENT, EACCES, E2BIG, ENOEXEC for a script without "#!", EMFILE, ENOMEM, EAGAIN if there are
// too many processes.
//
// Ending. A child is *ended* by SIGTERM, and by SIGKILL if it still runs `grace` later. That happens
//   - when the context that was given to start() ends,
//   - by stop(),
//   - in the destructor, which parks until the child is gone.
// With `own_group` both signals go to all processes of its group, and what is left of the group when the child is gone gets
// SIGKILL. detach() lets the child run on. A child is reaped as soon as it ends, whether anybody waits or not: none stays a
// zombie. The end of tuza::run ends no child; a Process that outlives the run belongs to no goroutine, and its destructor
// sends SIGKILL and blocks the thread until the child is gone.
//
// Waiting takes no thread: a goroutine of the library waits for the child's pidfd. Where the kernel has none (before Linux
// 5.4, some sandboxes), or no descriptor is left, each child takes one thread that waits for it.
//
// The program must leave the children to this class: SIGCHLD must not be ignored, and nothing may wait for all children
// (waitpid(-1)). Otherwise the status is lost, and wait() returns ECHILD.
//
// Thread-safe, except for moving and destroying. Goroutines only, except for the destructor. Errors name the program.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/pipe.h>
#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tuza {

namespace detail {
class Child;
}

// Where descriptor 0, 1 or 2 of a child leads.
class Stdio {
 public:
  enum class Kind : std::uint8_t { kInherited, kNull, kPipe, kDescriptor, kOutput };

  static Stdio inherited() { return Stdio(Kind::kInherited); }  // where that of this process leads
  static Stdio null() { return Stdio(Kind::kNull); }            // to /dev/null
  static Stdio pipe() { return Stdio(Kind::kPipe); }            // to Process::in(), out() or err()
  // To an open descriptor, which stays the caller's, and must stay open until start() returns.
  static Stdio descriptor(int fd) { return Stdio(Kind::kDescriptor, fd); }
  static Stdio output() { return Stdio(Kind::kOutput); }  // of standard error: where standard output leads

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] int fd() const { return fd_; }  // -1: not kDescriptor

 private:
  explicit Stdio(Kind kind, int fd = -1) : kind_(kind), fd_(fd) {}

  Kind kind_;
  int fd_;
};

struct ProcessOptions {
  std::string folder = {};  // the working folder; empty: that of this process
  // All of the environment, as "NAME=value"; nothing: that of this process. PATH of this process finds the program anyway.
  std::optional<std::vector<std::string>> environment = {};
  // Variables in addition, or in place of those of the same name.
  std::vector<std::string> more_environment = {};
  Stdio in = Stdio::null();
  Stdio out = Stdio::inherited();
  Stdio err = Stdio::inherited();
  bool own_group = false;  // a process group of its own: a terminal's Ctrl-C does not reach it
  std::chrono::milliseconds grace =
      std::chrono::seconds(5);  // between SIGTERM and SIGKILL; 0: SIGKILL at once

  // Of run() and output() only; start() refuses them (EINVAL). Written to standard input, which is a pipe then. A child that
  // does not read all of it is no error.
  std::string input = {};
  // Of output() only: of standard output, and of standard error.
  std::size_t output_bytes_max = std::size_t{16} << 20;
};

// How a child has ended.
class ExitStatus {
 public:
  ExitStatus() = default;  // exit status 0
  // Of a child that has called exit(code), or that a signal has killed.
  static ExitStatus exited(int code) { return {code, 0, false}; }
  static ExitStatus killed(int signal, bool dumped_core) { return {0, signal, dumped_core}; }

  [[nodiscard]] bool ok() const { return code_ == 0 && signal_ == 0; }
  [[nodiscard]] std::optional<int> code() const { return signal_ == 0 ? std::optional(code_) : std::nullopt; }
  [[nodiscard]] std::optional<int> signal() const {
    return signal_ != 0 ? std::optional(signal_) : std::nullopt;
  }
  [[nodiscard]] bool dumped_core() const { return dumped_core_; }
  // "exit status 3", "killed by SIGSEGV, core dumped".
  [[nodiscard]] std::string message() const;
  bool operator==(const ExitStatus&) const = default;

 private:
  ExitStatus(int code, int signal, bool dumped_core)
      : code_(code), signal_(signal), dumped_core_(dumped_core) {}

  int code_ = 0, signal_ = 0;
  bool dumped_core_ = false;
};

struct ProcessOutput {
  ExitStatus status;
  std::string out, err;
};

class [[nodiscard]] Process {
 public:
  // Starts a program: `command` is its name and its arguments. EINVAL for an empty command, and for a zero byte in any
  // string. Parks; blocks the thread until the program is loaded.
  [[nodiscard]] static Result<Process> start(const Context& ctx, const std::vector<std::string>& command,
                                             const ProcessOptions& options = {});
  [[nodiscard]] static Result<Process> start(const std::vector<std::string>& command,
                                             const ProcessOptions& options = {}) {
    return start(Context::background(), command, options);
  }

  // Runs a program to its end. A status other than 0 is no error; the end of `ctx` ends the child, and its cause is the
  // error. Parks.
  [[nodiscard]] static Result<ExitStatus> run(const Context& ctx, const std::vector<std::string>& command,
                                              ProcessOptions options = {});
  [[nodiscard]] static Result<ExitStatus> run(const std::vector<std::string>& command,
                                              ProcessOptions options = {}) {
    return run(Context::background(), command, std::move(options));
  }

  // The same, and collects standard output and standard error; `out` and `err` of the options are not used, except for
  // Stdio::output() and Stdio::null(). More than `output_bytes_max` of either ends the child, and is EFBIG. What processes
  // that the child has left behind write after its end is not waited for. Parks.
  [[nodiscard]] static Result<ProcessOutput> output(const Context& ctx,
                                                    const std::vector<std::string>& command,
                                                    ProcessOptions options = {});
  [[nodiscard]] static Result<ProcessOutput> output(const std::vector<std::string>& command,
                                                    ProcessOptions options = {}) {
    return output(Context::background(), command, std::move(options));
  }

  Process() = default;  // no child; only for assigning to it
  Process(Process&&) noexcept = default;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  [[nodiscard]] int pid() const;  // after the end, another process may have this number

  // Our ends of the pipes that the options have asked for; closed ends for all others. A child that reads until the end of
  // its input needs in().close().
  [[nodiscard]] PipeWriter& in() { return in_; }
  [[nodiscard]] PipeReader& out() { return out_; }
  [[nodiscard]] PipeReader& err() { return err_; }

  // Waits for the child's end: any number of goroutines, any number of times. It does not close pipes: a child that waits
  // for room in one does not end. The context ends the wait only, with its cause. ECHILD: somebody else has got the status.
  // Parks.
  [[nodiscard]] Result<ExitStatus> wait() { return wait(Context::background()); }
  [[nodiscard]] Result<ExitStatus> wait(const Context& ctx);

  // Sends a signal to the child, with `own_group` to its group. ESRCH if it has ended. Parks.
  [[nodiscard]] Result<void> signal(int number);
  // Begins to end the child, if it runs, and does not wait for that: wait() does. Parks.
  void stop();
  // Lets the child run on: neither this object nor the context ends it any more. Our ends of the pipes are closed. Parks.
  void detach();

 private:
  std::shared_ptr<detail::Child> child_;
  PipeWriter in_;
  PipeReader out_, err_;
};

}  // namespace tuza
