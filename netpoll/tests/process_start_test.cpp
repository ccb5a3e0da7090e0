// Starting child processes: what they inherit, and what start() reports.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuza/netpoll/tests/process_testing.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tuza::testing {
namespace {

class ProcessStartTest : public WithProcs {};
TUZA_WITH_PROCS(ProcessStartTest);

// A folder of the test's own.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "tuza-process-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = std::filesystem::canonical(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path() const { return path_; }
  std::string add(const std::string& name, const std::string& content, mode_t mode) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

 private:
  std::string path_;
};

std::string refusal(const std::vector<std::string>& command, const ProcessOptions& options = {}) {
  const Result<Process> process = Process::start(command, options);
  return process ? "it started" : process.error().message();
}

TEST_P(ProcessStartTest, WhatCannotStartIsReportedWithItsName) {
  run_with(GetParam(), [] {
    const Folder folder;
    EXPECT_EQ(refusal({"no-such-program"}), "start no-such-program: No such file or directory");
    EXPECT_EQ(refusal({"/no/such/program"}), "start /no/such/program: No such file or directory");
    const std::string plain = folder.add("plain", "text", 0644),
                      script = folder.add("script", "exit 0", 0755);
    EXPECT_EQ(refusal({plain}), "start " + plain + ": Permission denied");
    EXPECT_EQ(refusal({script}), "start " + script + ": Exec format error");
    EXPECT_EQ(refusal({"true"}, {.folder = "/no/folder"}),
              "start true in /no/folder: No such file or directory");
    EXPECT_EQ(refusal({"true"}, {.folder = plain}), "start true in " + plain + ": Not a directory");
    EXPECT_EQ(refusal({"true", std::string(std::size_t{1} << 24, 'x')}),
              "start true: Argument list too long");
    EXPECT_EQ(refusal({"true"}, {.in = Stdio::descriptor(987'654)}), "start true: Bad file descriptor");
    EXPECT_EQ(refusal({"true"}, {.in = Stdio::descriptor(-1)}), "start true: Bad file descriptor");
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessStartTest, ContradictionsAreInvalid) {
  run_with(GetParam(), [] {
    const std::string zero("a\0b", 3);
    const std::string invalid = "start true: Invalid argument";
    EXPECT_EQ(refusal({}), "start: Invalid argument");
    EXPECT_EQ(refusal({"true", zero}), invalid);
    EXPECT_EQ(refusal({"true"}, {.folder = zero}), invalid);
    EXPECT_EQ(refusal({"true"}, {.environment = {{zero}}}), invalid);
    EXPECT_EQ(refusal({"true"}, {.more_environment = {zero}}), invalid);
    EXPECT_EQ(refusal({"true"}, {.input = "lost"}), invalid);
    EXPECT_EQ(refusal({"true"}, {.in = Stdio::output()}), invalid);
    EXPECT_EQ(refusal({"true"}, {.out = Stdio::output()}), invalid);
  });
}

TEST_P(ProcessStartTest, WithoutDescriptorsNothingStarts) {
  run_with(GetParam(), [] {
    EXPECT_EQ(printed({"echo", "hello"}), "hello\n");
    const int childs = ::fcntl(0, F_DUPFD_CLOEXEC, 3);  // a number for the child's own files
    struct rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = ::dup(0);
    ::close(next);
    const struct rlimit none{static_cast<rlim_t>(next), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const std::string pipe = refusal({"true"}, {.out = Stdio::pipe()});
    const std::string folder = refusal({"true"}, {.folder = "/"});
    // Without a pidfd, a thread waits.
    Result<ExitStatus> without_pidfd = Process::run(shell("exit 3"), {.in = Stdio::inherited()});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ::close(childs);
    EXPECT_EQ(pipe, "start true: Too many open files");
    EXPECT_EQ(folder, "start true in /: Too many open files");
    EXPECT_EQ(without_pidfd->code(), 3);
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessStartTest, TheEnvironmentIsOursOrWhatWasAskedFor) {
  run_with(GetParam(), [] {
    ::setenv("TUZA_PROCESS_TEST", "ours", 1);
    const std::vector<std::string> echo = shell("echo $TUZA_PROCESS_TEST,$OTHER");
    EXPECT_EQ(printed(echo), "ours,\n");
    EXPECT_EQ(printed(echo, {.more_environment = {"OTHER=x"}}), "ours,x\n");
    EXPECT_EQ(printed(echo, {.more_environment = {"TUZA_PROCESS_TEST=theirs"}}), "theirs,\n");
    EXPECT_EQ(printed({"env"}, {.environment = {{"A=1"}}, .more_environment = {"B=2", "A=3"}}), "B=2\nA=3\n");
    EXPECT_EQ(printed({"env"}, {.environment = std::vector<std::string>()}), "");
    ::unsetenv("TUZA_PROCESS_TEST");
  });
}

TEST_P(ProcessStartTest, TheProgramIsFoundInPathAndRunsInItsFolder) {
  run_with(GetParam(), [] {
    const Folder folder;
    (void)folder.add("in-folder", "#!/bin/sh\necho found\n", 0755);
    EXPECT_EQ(printed({"pwd"}, {.folder = folder.path()}), folder.path() + "\n");
    EXPECT_EQ(printed({"./in-folder"}, {.folder = folder.path()}), "found\n");
    const std::string before = ::getenv("PATH");
    ::setenv("PATH", (folder.path() + ":" + before).c_str(), 1);
    EXPECT_EQ(printed({"in-folder"}), "found\n");
    ::setenv("PATH", before.c_str(), 1);
  });
}

TEST_P(ProcessStartTest, SignalsAreAsAProgramExpectsThem) {
  run_with(GetParam(), [] {
    // SIGPIPE is ignored here, and the Ms have handlers.
    sigset_t some, before;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &some, &before);
    ::signal(SIGHUP, SIG_IGN);
    std::string status = printed({"cat", "/proc/self/status"});
    ::signal(SIGHUP, SIG_DFL);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    // posix_spawn() may leave glibc's own two signals, 32 and 33, ignored.
    if (const auto own = status.find("180000000"); own != std::string::npos) status.replace(own, 9, 9, '0');
    for (const char* mask : {"SigBlk", "SigIgn", "SigCgt"}) {
      EXPECT_TRUE(status.contains(std::string(mask) + ":\t0000000000000000\n")) << status;
    }
  });
}

TEST_P(ProcessStartTest, NoDescriptorLeaks) {
  run_with(GetParam(), [] {
    const int leaky = ::dup(0);  // without O_CLOEXEC
    EXPECT_EQ(printed({"ls", "/proc/self/fd"}), "0\n1\n2\n3\n") << "3 is that of ls";
    ::close(leaky);
  });
}

TEST_P(ProcessStartTest, DescriptorsMayChangePlaces) {
  run_with(GetParam(), [] {
    const Folder folder;
    const auto link = [](int fd) {
      return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string() + "\n";
    };
    const std::string file = folder.path() + "/links";
    std::vector<std::string> command = shell("(for i in 0 1 2; do readlink /proc/$$/fd/$i; done) >$0");
    command.push_back(file);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const int before = ::dup(2);
    ::dup2(ends[1], 2);
    const std::string expected = link(2) + link(0) + link(1);
    const Result<ExitStatus> done = Process::run(
        command, {.in = Stdio::descriptor(2), .out = Stdio::descriptor(0), .err = Stdio::descriptor(1)});
    ::dup2(before, 2);
    for (const int fd : {before, ends[0], ends[1]}) ::close(fd);
    EXPECT_TRUE(done && done->ok());
    std::ifstream in(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), expected);
  });
}

TEST_P(ProcessStartTest, TheKernelsTimeSliceIsItsOwn) {
  run_with(GetParam(), [] {
    struct Attr {
      std::uint32_t size, policy;
      std::uint64_t flags;
      std::int32_t nice;
      std::uint32_t priority;
      std::uint64_t runtime, deadline, period;
    };
    Attr of_main{}, of_child{};
    Process process = Process::start({"cat"}, {.in = Stdio::pipe()}).value();
    ASSERT_EQ(::syscall(SYS_sched_getattr, ::getpid(), &of_main, sizeof of_main, 0), 0);
    ASSERT_EQ(::syscall(SYS_sched_getattr, process.pid(), &of_child, sizeof of_child, 0), 0);
    EXPECT_EQ(of_child.runtime, of_main.runtime) << "the main thread is no M";
  });
}

}  // namespace
}  // namespace tuza::testing
