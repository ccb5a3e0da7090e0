// The timeouts of a server and of a client, by a fake clock over a network in memory: each to the nanosecond, without waiting.
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/time/fake_clock.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::FakeClock;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class TimeoutsTest : public WithProcs {};
TUZA_WITH_PROCS(TimeoutsTest);

struct Timed {
  FakeClock& clock;
  Server& server;
  RawClient& raw;
};

void timed(int procs, Handler handler, const ServerOptions& options, const std::function<void(Timed)>& body) {
  run_with(procs, [&] {
    FakeClock clock;
    Server server(std::move(handler), {.server = options});
    RawClient raw(server.dial().value());
    body({clock, server, raw});
    raw.conn().close();
    EXPECT_EQ(server.close(), "");
  });
}

constexpr auto kPatient = std::chrono::hours(10'000);

TEST_P(TimeoutsTest, AnIdleConnectionIsClosedAfterIdleTimeout) {
  timed(GetParam(), hello_router(), {.idle_timeout = 75s}, [](Timed t) {
    t.raw.read_until_closed(kPatient);
    EXPECT_EQ(t.clock.elapsed(), 75s) << "before the first request";
    EXPECT_TRUE(t.raw.closed());
    EXPECT_EQ(t.raw.received(), "");
    RawClient second(t.server.dial().value());
    for (int i = 1; i <= 3; ++i) {
      tuza::sleep_for(74s);
      second.send(get("/"));
      EXPECT_EQ(second.read_responses(static_cast<std::size_t>(i)).size(), static_cast<std::size_t>(i));
    }
    const auto before = t.clock.elapsed();
    second.read_until_closed(kPatient);
    EXPECT_EQ(t.clock.elapsed() - before, 75s) << "after each";
    EXPECT_EQ(t.server.server().stats().idle_timeouts, 2u);
  });
}

TEST_P(TimeoutsTest, AHeadMustBeCompleteWithinHeaderTimeout) {
  timed(GetParam(), hello_router(), {.header_timeout = 10s}, [](Timed t) {
    tuza::sleep_for(5s);  // idle
    t.raw.send("GET / HTTP/1.1\r\n");
    for (int i = 0; i < 9; ++i) {  // a byte now and then does not prolong it
      tuza::sleep_for(1s);
      t.raw.send("X");
    }
    t.raw.read_until([&] { return t.raw.received().find("408") != std::string::npos; }, kPatient);
    EXPECT_EQ(t.clock.elapsed(), 15s);
    EXPECT_TRUE(t.raw.received().starts_with("HTTP/1.1 408 ")) << t.raw.received();
    EXPECT_EQ(t.server.server().stats().header_timeouts, 1u);
  });
}

TEST_P(TimeoutsTest, ABodyMustComeWithinBodyTimeoutAtTheMinimumRate) {
  const ServerOptions options{.body_timeout = 30s, .body_rate_min_bytes_per_second = 10};
  timed(GetParam(), hello_router(), options, [](Timed t) {
    t.raw.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" + std::string(50, 'x'));
    t.raw.read_until([&] { return t.raw.received().find("408") != std::string::npos; }, kPatient);
    EXPECT_EQ(t.clock.elapsed(), 35s) << "50 bytes more are 5 s more";
  });
}

// Waits for the client count together; what the handler does between them is not the client's fault.
TEST_P(TimeoutsTest, ABodyMayWaitForTheHandler) {
  const ServerOptions options{.body_timeout = 30s, .body_rate_min_bytes_per_second = 1 << 20};
  const auto busy = [](Request& req, ResponseWriter& res) {
    std::array<std::byte, 4> some{};
    for (Result<std::size_t> n = req.read_body(some); n && *n > 0; n = req.read_body(some))
      tuza::sleep_for(100s);
    res.text("ok");
  };
  timed(GetParam(), busy, options, [](Timed t) {
    t.raw.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\n" + std::string(40, 'x'));
    t.raw.read_until([&] { return t.raw.received().find("ok") != std::string::npos; }, kPatient);
    EXPECT_TRUE(t.raw.received().starts_with("HTTP/1.1 200 ")) << t.raw.received();
    EXPECT_EQ(t.clock.elapsed(), 1'000s);
    t.raw.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\nsome");
    for (int i = 0; i < 3; ++i) {
      tuza::sleep_for(108s);  // the handler waits for 8 s of them
      t.raw.send("some");
    }
    t.raw.read_until([&] { return t.raw.received().find("408") != std::string::npos; }, kPatient);
    const auto took = std::chrono::round<std::chrono::seconds>(t.clock.elapsed()) - 1'000s;
    EXPECT_EQ(took, 3 * 108s + 100s + 6s) << "30 s of waiting";
  });
}

TEST_P(TimeoutsTest, TheContextOfARequestEndsAfterRequestTimeout) {
  const auto waits = [](Request& req, ResponseWriter& res) {
    const Context ctx = req.context();
    ctx.wait();
    res.send("text/plain", ctx.cause().message());
  };
  timed(GetParam(), waits, {.request_timeout = 15s}, [](Timed t) {
    t.raw.send(get("/"));
    const std::vector<Response> got = t.raw.read_responses(1);  // waits for 20 s
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, 200);
    EXPECT_EQ(t.clock.elapsed(), 15s);
  });
}

TEST_P(TimeoutsTest, TheContextOfARequestEndsWhenTheClientGoes) {
  Error cause(Errc::kOther, "");
  const auto waits = [&cause](Request& req, ResponseWriter&) {
    const Context ctx = req.context();
    ctx.wait();
    cause = ctx.cause();
  };
  timed(GetParam(), waits, {}, [](Timed t) {
    t.raw.send(get("/"));
    t.clock.settle();  // the handler waits
    EXPECT_EQ(t.server.server().stats().open, 1u);
    t.raw.conn().close();
    t.clock.settle();
    EXPECT_EQ(t.clock.elapsed(), 0s);
  });
  EXPECT_EQ(cause.code(), Errc::kClosed);
}

TEST_P(TimeoutsTest, AClientThatReadsNothingIsGivenUpAfterWriteTimeout) {
  const auto large = [](Request&, ResponseWriter& res) { res.send("text/plain", std::string(1 << 20, 'x')); };
  timed(GetParam(), large, {.write_timeout = 30s}, [](Timed t) {
    t.raw.send(get("/"));
    tuza::yield();
    while (t.server.server().stats().write_timeouts == 0 && t.clock.elapsed() < 60s) t.clock.advance(1s);
    EXPECT_GE(t.clock.elapsed(), 30s);
    EXPECT_LE(t.clock.elapsed(), 31s);
  });
}

TEST_P(TimeoutsTest, AShutdownCutsRequestsOffAfterShutdownTimeout) {
  Result<std::size_t> read = std::size_t{0};
  run_with(GetParam(), [&] {
    FakeClock clock;
    {
      Server server(
          [&](Request& req, ResponseWriter&) {
            std::array<std::byte, 8> some{};
            read = req.read_body(some);  // which never comes
          },
          {.server = {.body_timeout = 1h, .shutdown_timeout = 10s}});
      RawClient raw(server.dial().value());
      raw.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
      clock.settle();
      EXPECT_EQ(server.close(), "");
      EXPECT_GE(clock.elapsed(), 10s);
      EXPECT_LE(clock.elapsed(), 10s + 100ms) << "it looks every millisecond";
    }
  });
  EXPECT_FALSE(read);
}

TEST_P(TimeoutsTest, AClientWaitsForAHeadForHeadTimeoutAndForAllOfItForTimeout) {
  const auto slow = [](Request& req, ResponseWriter& res) {
    if (tuza::sleep_for(req.context(), 40s)) res.send("text/plain", "late");
  };
  run_with(GetParam(), [&] {
    FakeClock clock;
    Server server(slow, {.client = {.head_timeout = 30s}});
    EXPECT_TRUE(server.client().get(Context::background(), server.url()).error().timeout());
    EXPECT_EQ(clock.elapsed(), 30s);
    Client patient({.dial = [&](const Context&, const Url&) { return server.dial(); },
                    .head_timeout = 0s,
                    .timeout = 50s});
    const auto before = clock.elapsed();
    EXPECT_EQ(patient.get(Context::background(), server.url()).value().body().value(), "late");
    EXPECT_EQ(clock.elapsed() - before, 40s);
    const auto [ctx, cancel] = with_timeout(Context::background(), 10s);
    EXPECT_TRUE(patient.get(ctx, server.url()).error().timeout());
    EXPECT_EQ(clock.elapsed() - before, 50s);
  });
}

TEST_P(TimeoutsTest, AClientRepeatsARequestWhoseKeptConnectionHasTimedOutMeanwhile) {
  run_with(GetParam(), [&] {
    FakeClock clock;
    Server server(hello_router(), {.server = {.idle_timeout = 5s}});
    const Context& ctx = Context::background();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(server.client().get(ctx, server.url()).value().body().value(), "Hello, World!");
      clock.advance(6s);
    }
    EXPECT_EQ(server.client().stats().dialled, 2u);
    EXPECT_EQ(server.client().stats().repeated, 0u) << "the end had been seen";
  });
}

TEST_P(TimeoutsTest, AClientClosesAConnectionThatHasBeenIdleForIdleTimeout) {
  run_with(GetParam(), [&] {
    FakeClock clock;
    Server server(hello_router(), {.client = {.idle_timeout = 20s}});
    EXPECT_TRUE(server.client().get(Context::background(), server.url()).value().body());
    clock.advance(19s);
    EXPECT_EQ(server.client().stats().idle, 1u);
    clock.advance(1s);
    EXPECT_EQ(server.client().stats().idle, 0u);
    EXPECT_EQ(server.server().stats().open, 0u);
  });
}

}  // namespace
}  // namespace tuza::http::testing
