// Log lines, their destinations, and their fate when nothing reads them.
#include <tuza/framework/log.h>
#include <tuza/framework/log/line.h>
#include <tuza/framework/log/line_queue.h>
#include <tuza/framework/log/output.h>
#include <tuza/http/server.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1, write_end = -1;
};

// A pipe; blocking, like standard error.
Pipe make_pipe() {
  int fds[2];
  if (pipe(fds) != 0) std::abort();
  return {fds[0], fds[1]};
}

void fill(const Pipe& pipe) {
  fcntl(pipe.write_end, F_SETFL, O_NONBLOCK);
  const std::string block(4096, '.');
  while (write(pipe.write_end, block.data(), block.size()) > 0) {
  }
  while (write(pipe.write_end, ".", 1) > 0) {
  }
  fcntl(pipe.write_end, F_SETFL, 0);
}

std::string drain(const Pipe& pipe) {
  fcntl(pipe.read_end, F_SETFL, O_NONBLOCK);
  std::string all;
  std::array<char, 65536> buffer;
  for (ssize_t n = 0; (n = read(pipe.read_end, buffer.data(), buffer.size())) > 0;) {
    all.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return all;
}

bool never() { return false; }

TEST(LogOutput, WritesWhatThereIsRoomForAndEndsALineThatItHasCutOff) {
  const Pipe pipe = make_pipe();
  logging::Output output(pipe.write_end);
  EXPECT_EQ(output.write("first\n", never), 6u);
  EXPECT_EQ(drain(pipe), "first\n");
  fill(pipe);
  EXPECT_EQ(output.write("dropped\n", never), 0u);
  (void)drain(pipe);
  const std::string large(100'000, 'x');  // the pipe takes 65,536 bytes
  EXPECT_EQ(output.write(large, never), 65536u);
  EXPECT_EQ(drain(pipe), large.substr(0, 65536));
  EXPECT_EQ(output.write("on a line of its own\n", never), 21u);
  EXPECT_EQ(drain(pipe), "\non a line of its own\n");
  close(pipe.read_end);
  close(pipe.write_end);
}

TEST(LogOutput, WaitsAsLongAsItIsToldTo) {
  const Pipe pipe = make_pipe();
  fill(pipe);
  logging::Output output(pipe.write_end);
  int asked = 0;
  const auto until_the_third_time = [&] {
    if (++asked == 3) (void)drain(pipe);
    return asked < 10;
  };
  EXPECT_EQ(output.write("late\n", until_the_third_time), 5u);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(drain(pipe), "late\n");
  close(pipe.read_end);
  close(pipe.write_end);
}

std::string line_of(logging::Form form, std::string_view text) {
  logging::Line line(form, 1'790'000'000'123'456'789, "info");
  line.message(text);
  return std::string(line.finish());
}

constexpr std::string_view kConsoleBegin = "2026-09-21T14:13:20.123Z info    ";
constexpr std::string_view kJsonBegin = R"({"time":"2026-09-21T14:13:20.123Z","level":"info","message":")";

std::string console(std::string_view text) { return std::string(kConsoleBegin).append(text) + "\n"; }
std::string json(std::string_view text) { return std::string(kJsonBegin).append(text) + "\"}\n"; }

TEST(LogLine, IsOneRecordWhateverIsInIt) {
  EXPECT_EQ(line_of(logging::Form::kConsole, "a\nb\x1b \"c\" \xff\xc3\xa9"),
            console("a\\x0ab\\x1b \"c\" \\xff\xc3\xa9"));
  EXPECT_EQ(line_of(logging::Form::kJson, "a\nb \"c\\ \xff\xc3\xa9 \xed\xa0\x80"),
            json("a\\u000ab \\\"c\\\\ \\ufffd\xc3\xa9 \\ufffd\\ufffd\\ufffd"));
}

// U+009B is ESC [ in one character.
TEST(LogLine, ControlCharactersOfTwoBytesAreSpelledOutToo) {
  const std::string_view text = "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0\xc2";
  EXPECT_EQ(line_of(logging::Form::kConsole, text), console("\\x80\\x9b\\x9f\xc2\xa0\\xc2"));
  EXPECT_EQ(line_of(logging::Form::kJson, text), json("\\u0080\\u009b\\u009f\xc2\xa0\\ufffd"));
}

// Lines were seen that a terminal showed in another order, or as two lines.
TEST(LogLine, DeceptiveCharactersAreSpelledOut) {
  const std::string_view text =
      "a\xe2\x80\xae z\xe2\x80\xa8 \xef\xbb\xbf \xc2\xad \xf3\xa0\x81\xb2 \xe2\x82\xac \xf0\x9f\x98\x80";
  const std::string_view shown =
      "a\\u202e z\\u2028 \\ufeff \\u00ad \\udb40\\udc72 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(line_of(logging::Form::kConsole, text), console(shown));
  EXPECT_EQ(line_of(logging::Form::kJson, text), json(shown));
}

TEST(LogLine, QuotedTextCannotEndItsQuotes) {
  for (const logging::Form form : {logging::Form::kConsole, logging::Form::kJson}) {
    logging::Line line(form, 0, "info");
    line.quoted("a\" 200 \\\"\n");
    const std::string_view text = line.finish();
    EXPECT_TRUE(
        text.contains(form == logging::Form::kConsole ? R"("a\" 200 \\\"\x0a")" : R"("a\" 200 \\\"\u000a")"))
        << text;
  }
}

// The search for characters that need no escape takes eight bytes at a time.
TEST(LogLine, EachByteIsSeenWhereverItStands) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool plain = byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
    for (std::size_t at = 0; at < 20; ++at) {
      std::string text(20, 'x');
      text[at] = c;
      EXPECT_EQ(line_of(logging::Form::kJson, text) == json(text), plain) << byte << " at " << at;
    }
  }
}

TEST(LogLine, GrowsWithoutLosingAnything) {
  for (const std::size_t n : {900u, 960u, 1000u, 1024u, 5000u}) {
    const std::string text(n, 'x');
    EXPECT_EQ(line_of(logging::Form::kJson, text + "\n"), json(text + "\\u000a"));
  }
}

TEST(LogLine, TheTimeOfADayIsRightAfterThatOfAnother) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(logging::Line(logging::Form::kConsole, 1'709'251'199'999'000'000, "info").finish(),
              "2024-02-29T23:59:59.999Z info   \n");
    EXPECT_EQ(logging::Line(logging::Form::kConsole, 1'709'251'200'000'000'000, "error").finish(),
              "2024-03-01T00:00:00.000Z error  \n");
    EXPECT_EQ(logging::Line(logging::Form::kConsole, 0, "info").finish(),
              "1970-01-01T00:00:00.000Z info   \n");
  }
}

// Reads until the pipe's other end is closed.
std::string read_all(int fd) {
  std::string all;
  std::array<char, 65536> buffer;
  for (ssize_t n = 0; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    all.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return all;
}

// A goroutine that waits for a queue may not destroy it: the queue's thread may be on its last instructions.
std::atomic<std::uint64_t> g_lost{0};
logging::LineQueue& make_queue(logging::Output output) {
  return keep_for_ever<logging::LineQueue>(std::move(output), logging::Form::kConsole, std::size_t{1000},
                                           g_lost);
}

TEST(LogQueue, TheEndWaitsForLateReaders) {
  const Pipe pipe = make_pipe();
  fill(pipe);
  logging::LineQueue& queue = make_queue(logging::Output(pipe.write_end));
  ASSERT_TRUE(queue.start());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.push("late\n"));
  std::string text;
  std::thread reader([&] {
    std::this_thread::sleep_for(400ms);  // longer than one wait for room
    text = read_all(pipe.read_end);
  });
  queue.stop(60s);
  close(pipe.write_end);
  reader.join();
  close(pipe.read_end);
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = text.find("late\n", at)) != std::string::npos; at += 5) ++lines;
  EXPECT_EQ(lines, 100u);
}

class LogFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "tuza_log_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder_ / "log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_, path_;
};

TEST_F(LogFile, WhatWasLostIsSaidAtTheEndAtLatest) {
  std::filesystem::create_symlink("/dev/full", path_);
  logging::LineQueue& queue = make_queue(logging::Output::open(path_).value());
  ASSERT_TRUE(queue.start());
  const std::uint64_t lost_before = g_lost;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push("lost\n"));
  ASSERT_TRUE(queue.drain(60s));
  EXPECT_EQ(g_lost - lost_before, 3u);
  std::filesystem::remove(path_);
  ASSERT_TRUE(queue.reopen());
  queue.stop(60s);
  EXPECT_NE(text().find("log: 3 lines dropped here\n"), std::string::npos) << text();
}

TEST_F(LogFile, AFifoThatNobodyReadsIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const Result<logging::Output> refused = logging::Output::open(path_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "log file " + path_.string() + ", a FIFO without a reader: No such device or address");
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  Result<logging::Output> taken = logging::Output::open(path_);
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_EQ(taken->write("line\n", never), 5u);
  std::array<char, 16> buffer;
  EXPECT_EQ(read(reader, buffer.data(), buffer.size()), 5);
  close(reader);
}

// The rest of a truncated line does not reach the next file.
TEST_F(LogFile, ANewFileBeginsWithALineOfItsOwn) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  logging::Output output = logging::Output::open(path_).value();
  const std::string large(200'000, 'x');
  EXPECT_LT(output.write(large, never), large.size());
  std::filesystem::remove(path_);
  ASSERT_TRUE(output.reopen());
  EXPECT_EQ(output.write("first\n", never), 6u);
  EXPECT_EQ(text(), "first\n");
  close(reader);
}

TEST_F(LogFile, TheSameFileContinuesBehindTheLineThatWasCutOff) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  logging::Output output = logging::Output::open(path_).value();
  const std::string large(200'000, 'x');
  EXPECT_LT(output.write(large, never), large.size());
  ASSERT_TRUE(output.reopen());
  std::array<char, 4096> buffer;
  while (read(reader, buffer.data(), buffer.size()) > 0) {
  }
  EXPECT_EQ(output.write("next\n", never), 5u);
  const long n = read(reader, buffer.data(), buffer.size());
  EXPECT_EQ(std::string(buffer.data(), static_cast<std::size_t>(std::max(n, 0L))), "\nnext\n");
  close(reader);
}

TEST(Logging, WithoutAThreadItIsAnError) {
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const auto logging = Logging::open({});
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&huge);
  ASSERT_FALSE(logging);
  EXPECT_TRUE(logging.error().message().starts_with("cannot create the log's thread: "))
      << logging.error().message();
  EXPECT_TRUE(Logging::open({}));
}

// No log line is lost without a report.
TEST(Logging, AfterItsEndLinesGoToStandardError) {
  const Pipe pipe = make_pipe();
  const int before = dup(2);
  dup2(pipe.write_end, 2);
  {
    const Logging logging;
  }
  spdlog::warn("after the end");
  dup2(before, 2);
  close(before);
  const std::string text = drain(pipe);
  EXPECT_TRUE(text.ends_with("Z warning after the end\n")) << text;
  close(pipe.read_end);
  close(pipe.write_end);
}

TEST(Logging, CountsEveryLineThatIsLost) {
  const Pipe pipe = make_pipe();
  fill(pipe);
  const int before = dup(2);
  dup2(pipe.write_end, 2);
  const std::uint64_t dropped_before = log_lines_dropped();
  {
    const auto logging = Logging::open({.queue_lines = 16}).value();
    for (int i = 0; i < 1000; ++i) spdlog::info("line {}", i);
    spdlog::debug("not wanted");
    EXPECT_GE(log_lines_dropped() - dropped_before, 1000u - 2 * 16);
  }
  dup2(before, 2);
  close(before);
  // The end did not wait for the thread, which was too slow to give up.
  const auto patience = Clock::now() + 60s;
  while (log_lines_dropped() - dropped_before < 1000 && Clock::now() < patience) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(log_lines_dropped() - dropped_before, 1000u);
  close(pipe.read_end);
  close(pipe.write_end);
}

std::atomic<int> g_lines{0};

TEST(LogLimiter, LetsAFewLinesASecondThroughAndCountsTheOthers) {
  static std::string last;
  set_log_sink([](LogLevel, std::string_view line) {
    ++g_lines;
    last = line;
  });
  LogLimiter limiter(3);
  Clock::time_point begin;
  do {  // until all of it falls within one second
    std::this_thread::sleep_for(1001ms);
    begin = Clock::now();
    g_lines = 0;
    for (int i = 0; i < 8; ++i) limiter.log(LogLevel::kInfo, "line");
  } while (Clock::now() - begin > 900ms);
  EXPECT_EQ(g_lines, 3);
  std::this_thread::sleep_for(1001ms);
  limiter.log(LogLevel::kInfo, "line");
  EXPECT_EQ(g_lines, 4);
  EXPECT_EQ(last, "line (and 5 more)");
  set_log_sink(nullptr);
}

class LoggingDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Serves one request while standard error is in the state made by `prepare`; then SIGTERM.
template <class Prepare>
[[noreturn]] void serve_one_request(Prepare prepare) {
  const Pipe pipe = make_pipe();
  int status = 1;
  {
    const Logging logging;
    status = run([&] {
      // Not earlier: a chaos build prints its seed on standard error, without Logging.
      dup2(pipe.write_end, 2);
      prepare(pipe);
      for (int i = 0; i < 1000; ++i) spdlog::info("line {}", i);
      const std::string address =
          net::to_string(net::listen("tcp", "127.0.0.1:0").value().endpoint());  // a free port
      go([address] {
        Result<net::Conn> conn = net::dial("tcp", address);
        for (; !conn; conn = net::dial("tcp", address)) sleep_for(1ms);
        (void)conn->write_all(std::string_view("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        std::array<std::byte, 4096> buffer;
        const Result<std::size_t> n = conn->read(buffer);
        raise(n && *n > 0 ? SIGTERM : SIGKILL);
      });
      return http::listen_and_serve(
          address, [](http::Request&, http::ResponseWriter& res) { res.text("still here"); });
    });
  }
  std::_Exit(status);
}

TEST_F(LoggingDeathTest, AFullPipeAsStandardErrorHoldsUpNeitherServingNorTheEnd) {
  EXPECT_EXIT(serve_one_request([](const Pipe& pipe) { fill(pipe); }), ::testing::ExitedWithCode(0), "");
}

TEST_F(LoggingDeathTest, AClosedPipeAsStandardErrorIsNoSigpipe) {
  EXPECT_EXIT(serve_one_request([](const Pipe& pipe) { close(pipe.read_end); }), ::testing::ExitedWithCode(0),
              "");
}

}  // namespace
}  // namespace tuza
