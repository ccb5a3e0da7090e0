// listen_and_serve() in a process of its own: its output, how signals end it, and its exit status.
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace tuza::http::testing {
namespace {

// Filled by the log sink, in the child process.
std::atomic<bool> g_serving{false}, g_draining{false};
std::string g_address;

void watch_log(LogLevel, std::string_view line) {
  constexpr std::string_view kServing = "tuza: serving HTTP on ";
  (void)!::write(2, (std::string(line) + "\n").c_str(), line.size() + 1);
  if (line.find(": no new connections") != std::string_view::npos) g_draining = true;
  if (!line.starts_with(kServing)) return;
  g_address = line.substr(kServing.size());
  g_serving.store(true);
}

std::string recurse(int depth) {
  std::string name = "level " + std::to_string(depth);
  return depth == 0 ? name : recurse(depth - 1) + name;
}

// Serves, and runs `client` concurrently once it serves. Exits the process with the status of a program whose
// main function this is.
template <class Client>
[[noreturn]] void serve_with(Client client, ServerOptions options = {}) {
  set_log_sink(&watch_log);
  Router router = hello_router();
  std::atomic<int> in_handler{0};
  router.handle("GET /hang", [&in_handler](Request&, ResponseWriter&) {
    ++in_handler;
    sleep_for(1h);
  });
  router.handle("GET /recurse", [](Request&, ResponseWriter& res) { res.text(recurse(1'000'000'000)); });
  router.handle("GET /pause", [&in_handler](Request&, ResponseWriter& res) {
    ++in_handler;
    sleep_for(200ms);
    res.text("rested");
  });
  const int status = run([&] {
    WaitGroup clients;
    clients.go([&] {
      while (!g_serving) sleep_for(1ms);
      client(in_handler);
    });
    const Result<void> served = listen_and_serve("127.0.0.1:0", std::move(router), options);
    clients.wait();  // its output follows its response
    return served;
  });
  std::_Exit(status);
}

void wait_for(const std::atomic<int>& count, int wanted = 1) {
  while (count < wanted) sleep_for(1ms);
}

class ListenAndServeDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ListenAndServeDeathTest, SigtermEndsAnIdleServerWithStatus0) {
  EXPECT_EXIT(serve_with([](auto&) {
                EXPECT_EQ(fetch(g_address, get("/")).status, 200);
                kill(getpid(), SIGTERM);
              }),
              ::testing::ExitedWithCode(0),
              "serving HTTP on 127.0.0.1:[0-9]+\n.*SIGTERM: no new connections");
}

TEST_F(ListenAndServeDeathTest, SigintLetsARequestInFlightFinish) {
  EXPECT_EXIT(serve_with([](const std::atomic<int>& in_handler) {
                go([&in_handler] {
                  wait_for(in_handler);
                  kill(getpid(), SIGINT);
                  kill(getpid(), SIGINT);  // as timeout(1) signals a process, and its group behind it
                });
                const Response r = fetch(g_address, get("/pause"));
                const std::string text = "client got: " + r.body + ", " + r.header("connection") + "\n";
                (void)!::write(2, text.c_str(), text.size());
              }),
              ::testing::ExitedWithCode(0), "client got: rested, close");
}

TEST_F(ListenAndServeDeathTest, HandlersThatDoNotEndDoNotHoldUpTheEnd) {
  EXPECT_EXIT(serve_with(
                  [](const std::atomic<int>& in_handler) {
                    for (int i = 0; i < 2; ++i) {
                      go([] { (void)fetch(g_address, get("/hang")); });
                    }
                    wait_for(in_handler, 2);
                    raise(SIGTERM);
                  },
                  {.shutdown_timeout = 50ms}),
              ::testing::ExitedWithCode(1),
              "SIGTERM: no new.*\n.*2 requests did not end even after being cut off\n"
              "tuza: shutdown: .*\n$");
}

// Like standard error on a full pipe that nothing reads.
TEST_F(ListenAndServeDeathTest, ALogThatIsStuckDoesNotHoldUpTheEnd) {
  EXPECT_EXIT(serve_with([](auto&) {
                set_log_sink([](LogLevel, std::string_view) { sleep_for(1h); });
                raise(SIGTERM);
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(ListenAndServeDeathTest, ASecondSignalEndsTheProcessAtOnce) {
  EXPECT_EXIT(serve_with([](const std::atomic<int>& in_handler) {
                go([] { (void)fetch(g_address, get("/hang")); });
                wait_for(in_handler);
                kill(getpid(), SIGTERM);
                while (!g_draining) sleep_for(1ms);
                for (;; sleep_for(10ms)) kill(getpid(), SIGTERM);  // two in a row may count as one
              }),
              ::testing::ExitedWithCode(1), "SIGTERM");
}

TEST_F(ListenAndServeDeathTest, APortInUseIsOneLineAndStatus1) {
  EXPECT_EXIT(serve_with([](auto&) {
                const Result<void> second = listen_and_serve(g_address, hello_router());
                std::_Exit(rt::report_error(second.error()));
              }),
              ::testing::ExitedWithCode(1), "tuza: listen 127.0.0.1:[0-9]+: Address already in use\n$");
}

TEST_F(ListenAndServeDeathTest, AStackOverflowInAHandlerNamesTheGoroutine) {
  EXPECT_DEATH(
      serve_with([](auto&) { (void)fetch(g_address, get("/recurse")); }),
      "goroutine [0-9]+ \\[running\\] conn: stack overflow .*increase http::ServerOptions::stack_bytes");
}

}  // namespace
}  // namespace tuza::http::testing
