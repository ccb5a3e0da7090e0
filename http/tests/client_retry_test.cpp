// retry(): what is repeated, when, and how often at most.
#include <gtest/gtest.h>
#include <tuza/http/client/middleware/retry.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/fake_clock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

// One upstream, "http://a", that answers with `statuses`, one after the other, then with 200.
struct RetryScene {
  explicit RetryScene(RetryOptions options = {}, std::vector<int> statuses = {}, HeaderFields fields = {})
      : answers(std::move(statuses)),
        upstream(upstreams.add("http://a",
                               [this, fields = std::move(fields)](Request&, ResponseWriter& res) {
                                 const std::size_t index = asked++;
                                 const int status = index < answers.size() ? answers[index] : 200;
                                 if (status != 200) {
                                   for (const auto& [name, value] : fields) res.set_header(name, value);
                                 }
                                 res.text(status, std::to_string(index));
                               })),
        client(upstreams.client_options({.middleware = {retry(std::move(options))}})) {}

  Result<ClientResponse> ask(Method method, std::string_view key = {}) {
    ClientRequest request(method, "http://a/");
    if (!key.empty()) request.set_header("Idempotency-Key", key);
    request.set_body("text");
    return client.send({}, request);
  }
  // Bodies of answers count the requests.
  std::string get() {
    Result<ClientResponse> res = client.get({}, "http://a/");
    return res ? std::to_string(res->status()) + " " + res->body().value_or("cut off")
               : res.error().message();
  }
  [[nodiscard]] std::size_t requests() const { return upstream.requests().size(); }

  // Since the scene has begun.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const { return now() - begun; }

  const std::chrono::steady_clock::time_point begun = now();
  const std::vector<int> answers;
  std::atomic<std::size_t> asked = 0;
  FakeUpstreams upstreams;
  FakeUpstream& upstream;
  Client client;
};

void with_fake_clock(int procs, const std::function<void()>& body) {
  run_with(procs, [&] {
    const tuza::testing::FakeClock clock;
    body();
  });
}

class RetryTest : public WithProcs {};
TUZA_WITH_PROCS(RetryTest);

TEST_P(RetryTest, RepeatsTheStatusesThatPass) {
  with_fake_clock(GetParam(), [] {
    for (const int status : {429, 502, 503, 504}) {
      RetryScene scene({}, {status, status});
      EXPECT_EQ(scene.get(), "200 2") << status;
      EXPECT_LE(scene.elapsed(), 300ms) << "at most 100 ms and 200 ms";
    }
    for (const int status : {400, 404, 408, 500, 501}) {
      RetryScene scene({}, {status});
      EXPECT_EQ(scene.get(), std::to_string(status) + " 0");
      EXPECT_EQ(scene.elapsed(), 0s);
    }
    RetryScene own({.statuses = {500}}, {500, 503});
    EXPECT_EQ(own.get(), "503 1");
    RetryScene lasting({.tries_max = 4}, {503, 503, 503, 503, 503});
    EXPECT_EQ(lasting.get(), "503 3") << "the last answer";
    RetryScene once({.tries_max = 1}, {503});
    EXPECT_EQ(once.get(), "503 0");
  });
}

TEST_P(RetryTest, RepeatsAfterErrorsOfTheNetwork) {
  with_fake_clock(GetParam(), [] {
    RetryScene scene;
    scene.upstream.refuse_dials(2);
    EXPECT_EQ(scene.get(), "200 0");
    scene.upstream.drop_requests(1);
    scene.client.close_idle();
    EXPECT_EQ(scene.get(), "200 1");
    scene.upstream.refuse_dials(5);
    scene.client.close_idle();
    const std::string failed = scene.get();
    EXPECT_TRUE(failed.contains("GET http://a/: 3 tries: dial ")) << failed;
    EXPECT_TRUE(failed.contains("Connection refused")) << failed;
    RetryScene slow;
    slow.upstream.delay(1h);
    EXPECT_TRUE(slow.get().contains("3 tries: "));
    EXPECT_EQ(slow.requests(), 3u) << "each had its head_timeout";
  });
}

TEST_P(RetryTest, RepeatsOnlyWhatMayBeRepeated) {
  with_fake_clock(GetParam(), [] {
    for (const Method method : {Method::kGet, Method::kPut, Method::kDelete, Method::kOptions}) {
      RetryScene scene({}, {503});
      EXPECT_EQ(scene.ask(method)->status(), 200) << name(method);
      EXPECT_EQ(scene.upstream.requests().back().body, "text");
    }
    for (const Method method : {Method::kPost, Method::kPatch}) {
      RetryScene without({}, {503});
      EXPECT_EQ(without.ask(method)->status(), 503) << name(method);
      RetryScene with({}, {503});
      EXPECT_EQ(with.ask(method, "1")->status(), 200) << name(method);
      RetryScene dropped;
      dropped.upstream.drop_requests();
      EXPECT_TRUE(dropped.ask(method).error().is(Errc::kEndOfStream));
      EXPECT_EQ(dropped.requests(), 1u) << "it may have been carried out";
      RetryScene unsent;
      unsent.upstream.refuse_dials(2);
      EXPECT_EQ(unsent.ask(method)->status(), 200) << "it has reached nobody";
    }
    RetryScene scene({}, {503});
    ClientRequest source(Method::kPut, "http://a/");
    source.set_body_source([](std::span<std::byte>) -> Result<std::size_t> { return 0; });
    EXPECT_EQ(scene.client.send({}, source)->status(), 503);
    RetryScene broken;
    broken.upstream.break_off(0);
    EXPECT_EQ(broken.get(), "200 cut off") << "the answer has begun";
  });
}

TEST_P(RetryTest, DoesNotRepeatWhatWouldFailAgain) {
  with_fake_clock(GetParam(), [] {
    int tries = 0;
    const auto failing = [&](Error error) -> ClientMiddleware {
      return [&tries, error](const Context&, ClientRequest&, const ClientNext&) -> Result<ClientResponse> {
        ++tries;
        return std::unexpected(error);
      };
    };
    const auto tries_of = [&](Error error) {
      tries = 0;
      Client client({.middleware = {retry({.backoff = 0ms}), failing(std::move(error))}});
      EXPECT_FALSE(client.get({}, "http://a/"));
      return tries;
    };
    for (const Errc code : {Errc::kNoSuchHost, Errc::kBadAddress, Errc::kBadMessage, Errc::kClosed,
                            Errc::kCancelled, Errc::kOther})
      EXPECT_EQ(tries_of(Error(code, "fail")), 1) << make_error_code(code).message();
    for (const Errc code : {Errc::kTimeout, Errc::kEndOfStream, Errc::kResolverFailed})
      EXPECT_EQ(tries_of(Error(code, "fail")), 3) << make_error_code(code).message();
    EXPECT_EQ(tries_of(errorf("around: {}", Error::from_errno(ECONNRESET, "read"))), 3);
  });
}

TEST_P(RetryTest, WaitsAtRandomUpToALimitThatDoubles) {
  with_fake_clock(GetParam(), [] {
    std::vector<std::chrono::nanoseconds> longest(4);
    bool early = false;
    for (int round = 0; round < 200; ++round) {
      RetryScene scene({.tries_max = 5, .backoff = 100ms, .backoff_max = 300ms}, {});
      std::vector<std::chrono::steady_clock::time_point> times;
      Client client({.dial = [&](const Context&, const Url&) -> Result<net::Conn> {
                       times.push_back(now());
                       return std::unexpected(Error::from_errno(ECONNREFUSED, "dial"));
                     },
                     .middleware = {retry({.tries_max = 5, .backoff = 100ms, .backoff_max = 300ms})}});
      EXPECT_FALSE(client.get({}, "http://a/"));
      ASSERT_EQ(times.size(), 5u);
      for (std::size_t i = 0; i < 4; ++i)
        longest[i] = std::max<std::chrono::nanoseconds>(longest[i], times[i + 1] - times[i]);
      early = early || times[4] - times[3] < 100ms;
    }
    EXPECT_TRUE(early) << "full jitter begins at 0";
    const std::chrono::milliseconds limits[] = {100ms, 200ms, 300ms, 300ms};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_LE(longest[i], limits[i]);
      EXPECT_GE(longest[i], limits[i] * 3 / 4);  // 200 numbers, all below: once in 10^24 runs
    }
  });
}

TEST_P(RetryTest, WaitsAsLongAsTheServerAsksFor) {
  with_fake_clock(GetParam(), [] {
    const RetryOptions no_backoff{.backoff = 0ms, .retry_after_max = 20s};
    const std::string date = "Fri, 27 Nov 2026 10:00:00 GMT", later = "Fri, 27 Nov 2026 10:00:07 GMT";
    const struct {
      HeaderFields fields;
      std::chrono::nanoseconds waited;
      bool repeated;
    } cases[] = {{{{"Retry-After", "20"}}, 20s, true},
                 {{{"Retry-After", "0"}}, 0s, true},
                 {{{"Retry-After", "21"}}, 0s, false},
                 {{{"Retry-After", "99999999999999999999999"}}, 0s, false},
                 {{{"Date", date}, {"Retry-After", later}}, 7s, true},
                 {{{"Date", later}, {"Retry-After", date}}, 0s, true},
                 {{{"Retry-After", "Sat, 28 Nov 2020 10:00:00 GMT"}}, 0s, true},
                 {{{"Date", "now"}, {"Retry-After", "Fri, 31 Dec 9999 10:00:00 GMT"}}, 0s, false},
                 {{{"Retry-After", "soon"}}, 0s, true},
                 {{{"Retry-After", "-1"}}, 0s, true}};
    for (const auto& one : cases) {
      const std::string& asked = one.fields.back().second;
      RetryScene scene(no_backoff, {503}, one.fields);
      EXPECT_EQ(scene.get(), one.repeated ? "200 1" : "503 0") << asked;
      EXPECT_EQ(scene.elapsed(), one.waited) << asked;
    }
  });
}

TEST_P(RetryTest, EndsWithTheContext) {
  with_fake_clock(GetParam(), [] {
    RetryScene scene({.backoff = 0ms}, std::vector<int>(100, 503), {{"Retry-After", "10"}});
    {
      const auto limited = with_timeout({}, 15s);
      EXPECT_EQ(scene.client.get(limited.ctx(), "http://a/")->status(), 503);
      EXPECT_EQ(scene.elapsed(), 10s) << "the second pause would have been too long: there was none";
      EXPECT_EQ(scene.requests(), 2u);
    }
    {
      RetryScene other({}, std::vector<int>(100, 503), {{"Retry-After", "10"}});
      Client client(
          other.upstreams.client_options({.timeout = 25s, .middleware = {retry({.tries_max = 10})}}));
      EXPECT_EQ(client.get({}, "http://a/")->status(), 503);
      EXPECT_EQ(other.requests(), 3u) << "the timeout of the call ends the context, too";
    }
    const auto ended = with_cancel({});
    const auto before = scene.elapsed();
    WaitGroup group;
    group.go([&] {
      sleep_for(5s);
      ended.cancel();
    });
    const Result<ClientResponse> res = scene.client.get(ended.ctx(), "http://a/");
    group.wait();
    ASSERT_FALSE(res);
    EXPECT_TRUE(res.error().cancelled()) << res.error().message();
    EXPECT_EQ(scene.elapsed() - before, 5s);
    EXPECT_EQ(scene.requests(), 3u);
    EXPECT_TRUE(scene.client.get(ended.ctx(), "http://a/").error().cancelled());
    EXPECT_EQ(scene.requests(), 3u);
  });
}

TEST_P(RetryTest, IsLimitedToAFifthOfTheRequests) {
  with_fake_clock(GetParam(), [] {
    RetryScene scene({.tries_max = 10}, std::vector<int>(10'000, 503));
    for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(scene.get().starts_with("503"));
    EXPECT_LE(scene.requests(), 1'000u + 200u + 10u);
    EXPECT_GE(scene.requests(), 1'000u + 190u);
    // The budget is that of the middleware: a second client with it has none of its own.
    const ClientMiddleware shared = retry({.tries_max = 10, .budget_ratio = 0, .budget_burst = 3});
    RetryScene other({}, std::vector<int>(10'000, 503));
    for (int i = 0; i < 2; ++i) {
      Client client(other.upstreams.client_options({.middleware = {shared}}));
      EXPECT_EQ(client.get({}, "http://a/")->status(), 503);
    }
    EXPECT_EQ(other.requests(), 2u + 3u);
  });
}

TEST_P(RetryTest, RepeatsEachHopOfARedirect) {
  with_fake_clock(GetParam(), [] {
    FakeUpstreams upstreams;
    std::atomic<int> first = 0, second = 0;
    upstreams.add("http://a", [&](Request&, ResponseWriter& res) {
      if (++first == 1) return res.error(503);
      res.redirect("https://b/");
    });
    upstreams.add("https://b", [&](Request&, ResponseWriter& res) {
      if (++second == 1) return res.error(502);
      res.text("ok");
    });
    Client client(upstreams.client_options({.middleware = {retry({.backoff = 1ms})}}));
    EXPECT_EQ(client.get({}, "http://a/")->body(), "ok");
    EXPECT_EQ(first, 2);
    EXPECT_EQ(second, 2);
  });
}

// Over sockets, where a server that has gone refuses and one that dies breaks off.
TEST_P(RetryTest, RepeatsOverSockets) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int connection) {
      if (ScriptedServer::read_request(conn).empty() || connection == 0) return;
      (void)conn.write_all(connection == 1 ? "HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
                                           : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    Client client({.middleware = {retry({.backoff = 1ms})}});
    EXPECT_EQ(client.get({}, server.url())->body(), "ok");
    EXPECT_EQ(server.connections(), 3);
    const std::string nobody = closed_url();
    const Result<ClientResponse> refused = client.post({}, nobody, "a/b", "text");
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(std::errc::connection_refused));
    EXPECT_EQ(client.stats().dialled, 6u) << refused.error().message();
  });
}

TEST_P(RetryTest, DoesNotRepeatACertificateThatIsNotTrusted) {
  net::testing::Authority authority;
  const auto tls = net::TlsServer::load({.certificates = {authority.issue("site")}}).value();
  run_with(GetParam(), [&] {
    Server server([](Request&, ResponseWriter& res) { res.text("ok"); }, {.socket = true, .tls = tls});
    Client client({.middleware = {retry({.backoff = 1ms})}});
    const Result<ClientResponse> res = client.get({}, server.url());
    ASSERT_FALSE(res);
    EXPECT_TRUE(net::is_tls_error(res.error())) << res.error().message();
    EXPECT_EQ(client.stats().dialled, 1u);
  });
}

TEST(RetryOptionsTest, RefusesWhatMakesNoSense) {
  for (const RetryOptions& options :
       {RetryOptions{.tries_max = 0}, RetryOptions{.backoff = -1ms}, RetryOptions{.backoff_max = -1ms},
        RetryOptions{.retry_after_max = -1ms}, RetryOptions{.budget_ratio = -0.1},
        RetryOptions{.budget_burst = -1}})
    EXPECT_THROW((void)retry(options), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
