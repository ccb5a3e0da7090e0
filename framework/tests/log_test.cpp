// Logging to a standard error that nobody reads any more, or that was closed.
#include <tuza/framework/log.h>
#include <tuza/framework/stderr_sink.h>
#include <tuza/http/server.h>
#include <tuza/netpoll/tcp.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1, write_end = -1;
};

// A pipe; blocking, as standard error is.
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

void log(spdlog::sinks::sink& sink, const std::string& text) {
  sink.log(spdlog::details::log_msg("", spdlog::level::info, text));
}

TEST(StderrSink, TellsHowManyLinesItHasDropped) {
  const Pipe pipe = make_pipe();
  const auto sink = make_stderr_sink(pipe.write_end);
  sink->set_pattern("%v");
  log(*sink, "first");
  EXPECT_EQ(drain(pipe), "first\n");
  fill(pipe);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 1000; ++i) log(*sink, "dropped");
  EXPECT_LT(Clock::now() - begin, 5s) << "it waits once, not for each line";
  (void)drain(pipe);
  log(*sink, "again");
  log(*sink, "and again");
  EXPECT_EQ(drain(pipe), "(1000 lines dropped here)\nagain\nand again\n");
  const std::string large(100'000, 'x');  // the pipe takes 65,536 bytes
  log(*sink, large);
  EXPECT_EQ(drain(pipe), large.substr(0, 65536));
  log(*sink, "on a line of its own");
  EXPECT_EQ(drain(pipe), "\n(1 line dropped here)\non a line of its own\n");
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
  do {  // until it all falls into one second
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

// Serves one request while standard error is what `prepare` has made of it; then SIGTERM.
template <class Prepare>
[[noreturn]] void serve_one_request(Prepare prepare) {
  const Pipe pipe = make_pipe();
  int status = 1;
  {
    const Logging logging;
    status = run([&] {
      // Not before: a chaos build says its seed on standard error, without Logging.
      dup2(pipe.write_end, 2);
      prepare(pipe);
      for (int i = 0; i < 1000; ++i) spdlog::info("line {}", i);
      const std::string address =
          net::to_string(net::listen("tcp", "127.0.0.1:0").value().endpoint());  // a port that is free
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
