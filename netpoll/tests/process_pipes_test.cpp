// Pipes to and from child processes, and what output() makes of them.
#include <tuza/netpoll/buf_reader.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/tests/process_testing.h>

#include <array>
#include <cstdlib>
#include <random>

namespace tuza::testing {
namespace {

using namespace std::chrono_literals;

class ProcessPipesTest : public WithProcs {};
TUZA_WITH_PROCS(ProcessPipesTest);

constexpr std::size_t kMuch = std::size_t{4} << 20;  // more than any pipe holds

TEST_P(ProcessPipesTest, OutputFeedsAndReadsWhileAllPipesAreFull) {
  run_with(GetParam(), [] {
    std::mt19937_64 random(net::testing::seed());
    const std::string input = net::testing::random_bytes(random, kMuch);
    const Result<ProcessOutput> done = Process::output({"tee", "/dev/stderr"}, {.input = input});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_TRUE(done->status.ok());
    EXPECT_TRUE(done->out == input);
    EXPECT_TRUE(done->err == input);
  });
}

TEST_P(ProcessPipesTest, BothStreamsMayBeOneOrNone) {
  run_with(GetParam(), [] {
    const std::vector<std::string> both = shell("echo one; echo two >&2; echo three");
    EXPECT_EQ(printed(both), "one\nthree\n");
    EXPECT_EQ(printed(both, {.err = Stdio::output()}), "one\ntwo\nthree\n");
    EXPECT_EQ(printed(both, {.out = Stdio::null(), .err = Stdio::output()}), "");
    const Result<ProcessOutput> errors = Process::output(both, {.out = Stdio::null()});
    EXPECT_EQ(errors->err, "two\n");
    EXPECT_EQ(printed({"cat"}), "") << "no input by default";
  });
}

TEST_P(ProcessPipesTest, OutputBeyondTheLimitEndsTheChild) {
  run_with(GetParam(), [] {
    const Result<ProcessOutput> endless = Process::output({"yes"}, {.output_bytes_max = 1000});
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().message(), "output yes: File too large");
    EXPECT_TRUE(
        Process::output(shell("yes >&2"), {.output_bytes_max = 1000}).error().is(std::errc::file_too_large));
    EXPECT_EQ(printed({"head", "-c", "1000", "/dev/zero"}, {.output_bytes_max = 1000}).size(), 1000u);
    EXPECT_FALSE(Process::output({"head", "-c", "1001", "/dev/zero"}, {.output_bytes_max = 1000}));
    EXPECT_EQ(printed({"true"}, {.output_bytes_max = 0}), "");
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessPipesTest, AChildNeedNotReadItsInput) {
  run_with(GetParam(), [] {
    const std::string much(kMuch, 'x');
    EXPECT_TRUE(Process::run({"true"}, {.input = much})->ok());
    EXPECT_EQ(printed(shell("exec 0<&-; echo hello"), {.input = much}), "hello\n");
    Process process =
        Process::start(shell("exec 0<&-; echo closed"), {.in = Stdio::pipe(), .out = Stdio::pipe()}).value();
    EXPECT_EQ(read_some(process.out()), "closed\n");
    const Result<void> written = process.in().write_all(much);
    ASSERT_FALSE(written);
    EXPECT_TRUE(written.error().is(std::errc::broken_pipe)) << written.error().message();
  });
}

TEST_P(ProcessPipesTest, AGrandchildThatKeepsThePipeIsNotWaitedFor) {
  run_with(GetParam(), [] {
    const std::string pid = printed(shell("sleep 1000 & echo $!"));
    ASSERT_GT(std::atoi(pid.c_str()), 1) << pid;
    EXPECT_EQ(::kill(std::atoi(pid.c_str()), SIGKILL), 0);
    // One that does not read what it was given.
    const std::string reader = printed(shell("sleep 1000 <&0 & echo $!"), {.input = std::string(kMuch, 'x')});
    EXPECT_EQ(::kill(std::atoi(reader.c_str()), SIGKILL), 0) << reader;
    // One that writes faster than we read. It ends by SIGPIPE. There may be more than the limit before the shell ends.
    const Result<ProcessOutput> flood = Process::output(shell("yes &"), {.output_bytes_max = kMuch});
    EXPECT_TRUE(flood || flood.error().is(std::errc::file_too_large));
  });
}

TEST_P(ProcessPipesTest, ReadAllReadsToTheEnd) {
  run_with(GetParam(), [] {
    const auto zeros = [](const char* n) {
      return Process::start({"head", "-c", n, "/dev/zero"}, {.out = Stdio::pipe()}).value();
    };
    EXPECT_EQ(zeros("100000").out().read_all()->size(), 100'000u);
    EXPECT_EQ(zeros("1000").out().read_all(1000)->size(), 1000u);
    EXPECT_TRUE(zeros("1001").out().read_all(1000).error().is(std::errc::file_too_large));
    EXPECT_EQ(zeros("0").out().read_all(0)->size(), 0u);
  });
}

TEST_P(ProcessPipesTest, LinesAndCopiesWorkOnPipes) {
  run_with(GetParam(), [] {
    const ProcessOptions piped{.in = Stdio::pipe(), .out = Stdio::pipe()};
    Process sort = Process::start({"sort"}, piped).value();
    Process numbers = Process::start({"seq", "9", "-1", "1"}, {.out = Stdio::pipe()}).value();
    EXPECT_EQ(net::copy(sort.in(), numbers.out()), 18u);
    sort.in().close();
    net::BufReader in(sort.out());
    std::string all;
    for (const std::string_view line : in.lines()) all += line;
    EXPECT_FALSE(in.error());
    EXPECT_EQ(all, "123456789");
    EXPECT_TRUE(sort.wait()->ok());
  });
}

TEST_P(ProcessPipesTest, ContextsDeadlinesAndCloseEndWaits) {
  run_with(GetParam(), [] {
    Process process =
        Process::start({"sleep", "1000"}, {.in = Stdio::pipe(), .out = Stdio::pipe(), .grace = 0ms}).value();
    const std::string much(kMuch, 'x');
    std::array<char, 10> into{};
    WaitGroup group;
    const auto both = [&](const Context& ctx, auto expected) {
      group.go([&, ctx] { EXPECT_TRUE(expected(process.out().read(ctx, std::span<char>(into)).error())); });
      group.go([&, ctx] { EXPECT_TRUE(expected(process.in().write_all(ctx, much).error())); });
      wait_until_parked(1, WaitReason::kIoWrite);
      wait_until_parked(has_pidfds() ? 2 : 1, WaitReason::kIoRead);
    };
    const auto [ctx, cancel] = with_cancel(Context::background());
    both(ctx, [](const Error& error) { return error.cancelled(); });
    cancel();
    group.wait();
    both(Context::background(), [](const Error& error) { return error.timeout(); });
    process.out().set_deadline(net::testing::long_ago());
    process.in().set_deadline(net::testing::long_ago());
    group.wait();
    process.out().set_deadline(net::kNoDeadline);
    process.in().set_deadline(net::kNoDeadline);
    both(Context::background(), [](const Error& error) { return error.closed(); });
    process.out().close();
    process.in().close();
    group.wait();
  });
}

TEST_P(ProcessPipesTest, EndsWithoutAPipeAreClosed) {
  run_with(GetParam(), [] {
    Process process = Process::start({"true"}).value();
    EXPECT_TRUE(process.out().read_all().error().closed());
    EXPECT_TRUE(process.in().write_all("x").error().closed());
    process.err().set_deadline(net::testing::long_ago());
    process.err().close();
  });
}

}  // namespace
}  // namespace tuza::testing
