// add_log_sink(): the functions to which each line of the log is passed, beside the output.
#include <tuza/framework/log.h>
#include <tuza/sched/log.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;

TEST(LogSinks, SinksGetEveryLineInItsFormat) {
  struct Seen {
    Mutex mutex;
    std::vector<std::string> lines;
    std::atomic<bool> throws{false};
  };
  Seen seen;
  const LogSinkHandle sink = add_log_sink([&seen](std::string_view line) {
    const LockGuard lock(seen.mutex);
    seen.lines.emplace_back(line);
    if (seen.throws) throw std::runtime_error("ignored");
  });
  {
    const auto logging = Logging::open({.level = "warning", .json = true, .file = "/dev/null"}).value();
    spdlog::info("not wanted");
    spdlog::warn("one\ntwo");
    log_line(LogLevel::kError, "of the runtime");
    EXPECT_TRUE(drain_log(60s));
    seen.throws = true;
    spdlog::error("next to last");
    spdlog::error("last");
    EXPECT_TRUE(drain_log(60s));
  }
  remove_log_sink(sink);
  const LockGuard lock(seen.mutex);
  ASSERT_EQ(seen.lines.size(), 4u);
  EXPECT_TRUE(seen.lines[0].starts_with("{\"time\":")) << seen.lines[0];
  EXPECT_TRUE(seen.lines[0].ends_with(R"("level":"warning","message":"one\u000atwo"})"
                                      "\n"))
      << seen.lines[0];
  EXPECT_TRUE(seen.lines[1].ends_with(R"("level":"error","message":"of the runtime"})"
                                      "\n"))
      << seen.lines[1];
  EXPECT_TRUE(seen.lines[3].ends_with(R"("message":"last"})"
                                      "\n"))
      << seen.lines[3];
}

TEST(LogSinks, ARemovedSinkIsNotCalledAnyMore) {
  std::atomic<int> removed_lines{0}, other_lines{0};
  auto captured = std::make_shared<int>(1);
  const LogSinkHandle removed = add_log_sink([&, captured](std::string_view) { ++removed_lines; });
  const LogSinkHandle other = add_log_sink([&](std::string_view) { ++other_lines; });
  const auto logging = Logging::open({.file = "/dev/null"}).value();
  spdlog::info("to both");
  EXPECT_TRUE(drain_log(60s));
  remove_log_sink(removed);
  EXPECT_EQ(captured.use_count(), 1);
  remove_log_sink(removed);  // does nothing
  spdlog::info("to the other");
  EXPECT_TRUE(drain_log(60s));
  remove_log_sink(other);
  EXPECT_EQ(removed_lines, 1);
  EXPECT_EQ(other_lines, 2);
}

TEST(LogSinks, RemovingASinkWaitsForIt) {
  std::atomic<bool> runs{false}, removes{false}, ended{false};
  const LogSinkHandle sink = add_log_sink([&](std::string_view) {
    runs = true;
    runs.notify_all();
    removes.wait(false);
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    ended = true;
  });
  const auto logging = Logging::open({.file = "/dev/null"}).value();
  spdlog::info("line");
  runs.wait(false);
  removes = true;
  removes.notify_all();
  remove_log_sink(sink);
  EXPECT_TRUE(ended);
}

TEST(LogSinks, ASinkThatBlocksCostsLinesOnly) {
  std::mutex gate;
  std::atomic<int> lines{0};
  const LogSinkHandle sink = add_log_sink([&](std::string_view) {
    const std::scoped_lock wait(gate);
    ++lines;
  });
  std::unique_lock closed(gate);
  const auto logging = Logging::open({.file = "/dev/null", .queue_lines = 16}).value();
  const std::uint64_t before = log_lines_dropped();
  for (int i = 0; i < 1000; ++i) spdlog::info("line");
  EXPECT_GE(log_lines_dropped() - before, 1000u - 2 * 16);
  closed.unlock();
  EXPECT_TRUE(drain_log(60s));
  EXPECT_GT(lines, 0);
  remove_log_sink(sink);
}

// The page says that only the program's lines move.
TEST(LogSinks, AnotherDefaultLoggerTakesTheLinesOfTheProgram) {
  struct Counting final : spdlog::sinks::sink {
    void log(const spdlog::details::log_msg&) override { ++count; }
    void flush() override {}
    void set_pattern(const std::string&) override {}
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
    std::atomic<int> count{0};
  };
  std::atomic<int> seen{0};
  const LogSinkHandle sink = add_log_sink([&seen](std::string_view) { ++seen; });
  const auto logging = Logging::open({.file = "/dev/null"}).value();
  const auto others = std::make_shared<Counting>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("others", others));
  spdlog::info("of the program");
  log_line(LogLevel::kInfo, "of the runtime");
  EXPECT_TRUE(drain_log(60s));
  remove_log_sink(sink);
  EXPECT_EQ(others->count, 1);
  EXPECT_EQ(seen, 1);
}

// -- The writing thread and deadlocks (sched/rt/base/foreign_threads.h).

class LogSinksDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The sink wakes the goroutine after the last M has gone to sleep.
int wait_for_a_sink() {
  const auto logging = Logging::open({.file = "/dev/null"}).value();
  return run([] {
    Chan<int> seen(1);
    EXPECT_TRUE(drain_log(60s));  // the thread waits for lines
    const LogSinkHandle sink = add_log_sink([&seen](std::string_view) {
      while (!testing::awake_ms_are(0)) std::this_thread::sleep_for(1ms);
      (void)seen.try_send(7);
    });
    log_line(LogLevel::kInfo, "wake me");
    const int status = seen.recv().value_or(1);
    remove_log_sink(sink);
    return status;
  });
}

TEST_F(LogSinksDeathTest, AGoroutineThatWaitsForASinkIsNotDeadlocked) {
  EXPECT_EXIT(std::_Exit(wait_for_a_sink()), ::testing::ExitedWithCode(7), "");
}

TEST_F(LogSinksDeathTest, AThreadThatWaitsForLinesHidesNoDeadlock) {
  EXPECT_EXIT(
      {
        const auto logging = Logging::open({.file = "/dev/null"}).value();
        run([] {
          log_line(LogLevel::kInfo, "before");
          Chan<int> never;
          (void)never.recv();
        });
      },
      ::testing::ExitedWithCode(2), "all goroutines are asleep - deadlock!");
}

}  // namespace
}  // namespace tuza
