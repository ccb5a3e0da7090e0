// Goroutines that use one response, or one body, at the same moment are named.
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/go.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

constexpr std::size_t kLarge = 1 << 20;  // more than a connection in memory takes

// A client sends `request` and reads nothing of the answer. `handler` is given a function that runs two others, the second one
// when the first one waits.
template <class Handle>
void serve_silent_client(Handle handler, std::string_view request) {
  run_with(2, [&] {
    tuza::testing::FakeClock clock;
    const auto at_once = [&clock](std::function<void()> first, const std::function<void()>& second) {
      go(std::move(first));
      clock.settle();
      second();
    };
    Server server([&](Request& req, ResponseWriter& res) { handler(req, res, at_once); },
                  {.leak_check = false});
    net::Conn client = server.dial().value();
    (void)client.write_all(request);
    sleep_for(std::chrono::hours(1));  // the handler ends the process before
  });
}

TEST(TwoGoroutinesDeathTest, ThatWriteOneResponseAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto handler = [](Request&, ResponseWriter& res, const auto& at_once) {
    at_once([&res] { (void)res.write(std::string(kLarge, 'x')); }, [&] { (void)res.write("y"); });
  };
  EXPECT_DEATH(serve_silent_client(handler, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
               "tuza: fatal: two goroutines write one response at once");
}

TEST(TwoGoroutinesDeathTest, AHandlerThatReturnsBeforeItsGoroutineHasWrittenIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto handler = [](Request&, ResponseWriter& res, const auto& at_once) {
    at_once([&res] { (void)res.write(std::string(kLarge, 'x')); }, [] {});
  };
  EXPECT_DEATH(serve_silent_client(handler, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
               "tuza: fatal: two goroutines write one response at once");
}

TEST(TwoGoroutinesDeathTest, ThatReadOneBodyAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto handler = [](Request& req, ResponseWriter&, const auto& at_once) {
    const auto read = [&req] {
      std::array<std::byte, 8> piece;
      (void)req.read_body(piece);
    };
    at_once(read, read);
  };
  EXPECT_DEATH(serve_silent_client(handler, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"),
               "tuza: fatal: two goroutines read the body of one request at once");
}

}  // namespace
}  // namespace tuza::http::testing
