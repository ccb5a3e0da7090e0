// circuit_breaker(): what opens a circuit, who finds out, and what closes it.
#include <gtest/gtest.h>
#include <tuza/http/client/middleware/circuit_breaker.h>
#include <tuza/http/client/middleware/retry.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/fake_clock.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

// "http://a" and "http://b", which answer with a status that may be set, behind a breaker.
struct CircuitScene {
  explicit CircuitScene(CircuitBreakerOptions options = {})
      : a(add("http://a")),
        b(add("http://b")),
        client(upstreams.client_options({.middleware = {breaker(std::move(options))}})) {}

  FakeUpstream& add(std::string_view origin) {
    return upstreams.add(origin, [this](Request&, ResponseWriter& res) { res.text(status, "body"); });
  }
  ClientMiddleware breaker(CircuitBreakerOptions options) {
    options.on_change = [this](std::string_view origin, CircuitState state) {
      const std::scoped_lock lock(mutex);
      changes.append(origin.substr(7))
          .append(state == CircuitState::kOpen     ? "-"
                  : state == CircuitState::kClosed ? "+"
                                                   : "?");
    };
    return circuit_breaker(std::move(options));
  }
  // "200", "open", or "error".
  std::string ask(std::string_view url = "http://a/", const Context& ctx = {}) {
    const Result<ClientResponse> res = client.get(ctx, url);
    return res ? std::to_string(res->status()) : is_circuit_open(res.error()) ? "open" : "error";
  }
  void open() {
    status = 503;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(), "503");
    EXPECT_EQ(ask(), "open");
  }

  tuza::testing::FakeClock clock;
  std::atomic<int> status = 200;
  Mutex mutex;
  std::string changes;
  FakeUpstreams upstreams;
  FakeUpstream &a, &b;
  Client client;
};

class CircuitTest : public WithProcs {};
TUZA_WITH_PROCS(CircuitTest);

TEST_P(CircuitTest, OpensAfterFailuresInARowAndClosesWhenTheServerAnswers) {
  run_with(GetParam(), [] {
    CircuitScene scene;
    scene.open();
    EXPECT_EQ(scene.a.requests().size(), 5u);
    EXPECT_EQ(scene.ask("http://b/"), "503") << "another origin";
    const Error error = scene.client.get({}, "http://a/").error();
    EXPECT_EQ(error.message(), "GET http://a/: circuit open for http://a, for 10.0 s more: status 503");
    scene.clock.advance(9'999ms);
    EXPECT_EQ(scene.ask(), "open");
    scene.clock.advance(1ms);
    EXPECT_EQ(scene.ask(), "503") << "one request finds out";
    EXPECT_EQ(scene.ask(), "open");
    scene.clock.advance(10s);
    scene.status = 200;
    EXPECT_EQ(scene.ask(), "200");
    scene.status = 503;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(scene.ask(), "503") << "failures count from the beginning";
    scene.status = 200;
    EXPECT_EQ(scene.ask(), "200");
    scene.open();
    EXPECT_EQ(scene.changes, "a-a?a-a?a+a-");
  });
}

TEST_P(CircuitTest, CountsErrorsAndTimeoutsButNotWhatTheServerIsNotToBlameFor) {
  run_with(GetParam(), [] {
    CircuitScene scene({.failures_max = 3});
    scene.status = 500;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(scene.ask(), "500");
    scene.status = 404;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(scene.ask(), "404");
    const auto ended = with_cancel({});
    ended.cancel();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(scene.ask("http://a/", ended.ctx()), "error");
    EXPECT_EQ(scene.ask(), "404");
    scene.a.delay(1h);
    for (int i = 0; i < 3; ++i) {
      const auto limited = with_timeout({}, 1s);
      EXPECT_EQ(scene.ask("http://a/", limited.ctx()), "error");
    }
    EXPECT_EQ(scene.ask(), "open");
    scene.b.refuse_dials(2);
    EXPECT_EQ(scene.ask("http://b/"), "error");
    EXPECT_EQ(scene.ask("http://b/"), "error");
    scene.b.drop_requests();
    EXPECT_EQ(scene.ask("http://b/"), "error");
    EXPECT_EQ(scene.ask("http://b/"), "open");
    EXPECT_TRUE(scene.client.get({}, "http://b/").error().message().contains("closed without an answer"));
  });
}

TEST_P(CircuitTest, AClientWithoutAPlaceForAConnectionLearnsNothing) {
  run_with(GetParam(), [] {
    CircuitScene scene;
    Client client(scene.upstreams.client_options(
        {.connections_per_origin_max = 1, .middleware = {scene.breaker({.failures_max = 1})}}));
    std::optional<Result<ClientResponse>> first(client.get({}, "http://a/"));
    ASSERT_TRUE(*first) << "and its body is not read";
    const auto limited = with_timeout({}, 1s);
    const Error error = client.get(limited.ctx(), "http://a/").error();
    EXPECT_TRUE(error.message().contains("wait for a connection")) << error.message();
    first.reset();
    const Result<ClientResponse> second = client.get({}, "http://a/");
    EXPECT_TRUE(second) << second.error().message();
  });
}

TEST_P(CircuitTest, LetsOneRequestFindOutAndTheOthersFailMeanwhile) {
  run_with(GetParam(), [] {
    CircuitScene scene;
    scene.open();
    scene.clock.advance(10s);
    scene.status = 200;
    scene.a.delay(5s);
    std::string found;
    WaitGroup group;
    group.go([&] { found = scene.ask(); });
    scene.clock.advance(1s);
    EXPECT_EQ(scene.ask(), "open");
    EXPECT_TRUE(scene.client.get({}, "http://a/").error().message().ends_with("for http://a: status 503"));
    group.wait();
    EXPECT_EQ(found, "200");
    scene.a.delay(0s);
    EXPECT_EQ(scene.ask(), "200");
    EXPECT_EQ(scene.changes, "a-a?a+");
  });
}

// Otherwise nobody would ever find out.
TEST_P(CircuitTest, LetsTheNextRequestFindOutIfTheFirstOneIsCancelledOrThrows) {
  run_with(GetParam(), [] {
    CircuitScene scene;
    scene.open();
    scene.clock.advance(10s);
    const auto ended = with_cancel({});
    ended.cancel();
    EXPECT_EQ(scene.ask("http://a/", ended.ctx()), "error");
    scene.status = 200;
    EXPECT_EQ(scene.ask(), "200");
    EXPECT_EQ(scene.changes, "a-a?a-a?a+");

    bool throws = false;
    Client client(scene.upstreams.client_options(
        {.middleware = {circuit_breaker({.failures_max = 1}),
                        [&](const Context& ctx, ClientRequest& request, const ClientNext& next) {
                          if (throws) throw std::runtime_error("on purpose");
                          return next(ctx, request);
                        }}}));
    scene.status = 503;
    EXPECT_EQ(client.get({}, "http://a/")->status(), 503);
    scene.clock.advance(10s);
    throws = true;
    EXPECT_THROW((void)client.get({}, "http://a/"), std::runtime_error);
    throws = false;
    EXPECT_EQ(client.get({}, "http://a/")->status(), 503);
    EXPECT_TRUE(is_circuit_open(client.get({}, "http://a/").error()));
  });
}

TEST_P(CircuitTest, IgnoresAnswersOfRequestsFromBeforeItOpened) {
  run_with(GetParam(), [] {
    CircuitScene scene;
    std::string late;
    WaitGroup group;
    scene.a.delay(20s);
    group.go([&] { late = scene.ask(); });
    scene.clock.advance(1s);
    scene.a.delay(0s);
    scene.a.refuse_dials(5);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(scene.ask(), "error");
    EXPECT_EQ(scene.ask(), "open");
    group.wait();
    EXPECT_EQ(late, "200");
    EXPECT_EQ(scene.changes, "a-");
  });
}

TEST_P(CircuitTest, IsNotRepeatedByRetryAndBreaksItsTries) {
  run_with(GetParam(), [] {
    CircuitScene scene;
    scene.status = 503;
    Client client(scene.upstreams.client_options(
        {.middleware = {retry({.tries_max = 10}), circuit_breaker({.failures_max = 3})}}));
    const Result<ClientResponse> res = client.get({}, "http://a/");
    ASSERT_FALSE(res);
    EXPECT_TRUE(is_circuit_open(res.error())) << res.error().message();
    EXPECT_EQ(scene.a.requests().size(), 3u);
  });
}

TEST_P(CircuitTest, ForgetsTheOldestOfTooManyOrigins) {
  run_with(GetParam(), [] {
    CircuitScene scene({.failures_max = 1, .origins_max = 2});
    scene.add("http://c");
    scene.status = 503;
    for (const char* url : {"http://a/", "http://b/", "http://c/"}) {
      EXPECT_EQ(scene.ask(url), "503");
      scene.clock.advance(1s);
    }
    EXPECT_EQ(scene.ask("http://b/"), "open");
    EXPECT_EQ(scene.ask("http://c/"), "open");
    EXPECT_EQ(scene.ask("http://a/"), "503");
  });
}

TEST_P(CircuitTest, OpensOverSockets) {
  run_with(GetParam(), [] {
    const std::string nobody = closed_url();
    Client client({.middleware = {circuit_breaker({.failures_max = 2})}});
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.get({}, nobody).error().is(std::errc::connection_refused));
    EXPECT_TRUE(is_circuit_open(client.get({}, nobody).error()));
    EXPECT_EQ(client.stats().dialled, 2u);
  });
}

TEST(CircuitBreakerOptionsTest, RefusesWhatMakesNoSense) {
  EXPECT_THROW((void)circuit_breaker({.failures_max = 0}), std::invalid_argument);
  EXPECT_THROW((void)circuit_breaker({.pause = 0ms}), std::invalid_argument);
  EXPECT_THROW((void)circuit_breaker({.origins_max = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
