// Health checks of a proxy's upstreams, in memory and on a clock of their own.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxyHealthTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyHealthTest);

// An upstream that says its name, and in /healthz how it is.
struct Patient {
  explicit Patient(std::string_view name)
      : server([this, name](Request& req, ResponseWriter& res) {
          if (req.path() != "/healthz") return res.text(name);
          if (hangs) (void)sleep_for(req.context(), 1h);
          res.error(status);
        }) {}
  std::atomic<int> status = 200;
  std::atomic<bool> hangs = false;
  Server server;
};

struct Ward {
  ReverseProxyOptions options() {
    ReverseProxyOptions made{.upstreams = {"http://a", "http://b"}, .health = {.path = "/healthz"}};
    made.client.dial = [this](const Context&, const Url& url) {
      return (url.authority == "a" ? a : b).server.dial();
    };
    return made;
  }
  tuza::testing::FakeClock clock;
  Patient a{"a"}, b{"b"};
};

// A proxy and its server, which outlives it: what a proxy keeps would be left behind.
struct Front {
  explicit Front(ReverseProxyOptions options)
      : server([this](Request& req, ResponseWriter& res) { proxy(req, res); }), proxy(std::move(options)) {}
  // Whom ten requests reach.
  std::string asked() {
    std::string answers;
    for (int i = 0; i < 10; ++i) answers += server.client().get(kNoContext, server.url())->body().value();
    return answers;
  }
  UpstreamStats a() { return proxy.stats()[0]; }
  UpstreamStats b() { return proxy.stats()[1]; }

  Server server;
  ReverseProxy proxy;
};

TEST_P(ProxyHealthTest, AsksUnhealthyUpstreamsLast) {
  run_with(GetParam(), [] {
    Ward ward;
    Front front(ward.options());
    const auto unhealthy = [&] {
      return std::string(front.a().unhealthy ? "a" : "") + (front.b().unhealthy ? "b" : "");
    };
    EXPECT_EQ(front.a().checks, 0u);
    EXPECT_EQ(front.asked(), "ababababab");
    ward.clock.settle();
    EXPECT_EQ(front.a().checks, 1u);
    ward.a.status = 503;
    ward.clock.advance(5s);
    EXPECT_EQ(unhealthy(), "");
    ward.clock.advance(5s);
    EXPECT_EQ(unhealthy(), "a") << "two in a row";
    EXPECT_EQ(front.asked(), "bbbbbbbbbb");
    EXPECT_EQ(front.a().checks_failed, 2u);
    EXPECT_EQ(front.a().failures, 0u) << "of requests";

    ward.b.hangs = true;
    ward.clock.advance(3 * 7s);
    EXPECT_EQ(unhealthy(), "ab");
    EXPECT_NE(front.asked().find('a'), std::string::npos) << "there is no other";
    ward.a.status = 204;
    ward.clock.advance(5s);
    EXPECT_EQ(unhealthy(), "ab");
    ward.clock.advance(5s);
    EXPECT_EQ(unhealthy(), "b") << "two in a row";
    EXPECT_EQ(front.asked(), "aaaaaaaaaa");
  });
}

TEST_P(ProxyHealthTest, OptionsDecide) {
  run_with(GetParam(), [] {
    Ward ward;
    ReverseProxyOptions options = ward.options();
    options.health.every = 1s;
    options.health.failures_max = 1;
    options.health.passes = [](const ClientResponse& answer) { return answer.status() == 404; };
    Front front(options);
    ward.b.status = 404;
    EXPECT_EQ(front.asked().size(), 10u);
    ward.clock.advance(1s);
    EXPECT_TRUE(front.a().unhealthy);
    EXPECT_FALSE(front.b().unhealthy);
    EXPECT_EQ(front.b().checks, 2u);
    options.health = {};
    Front without(options);
    EXPECT_EQ(without.asked(), "ababababab");
    ward.clock.advance(1h);
    EXPECT_EQ(without.a().checks, 0u);
  });
}

TEST_P(ProxyHealthTest, ChecksEndWithTheProxy) {
  run_with(GetParam(), [] {
    Ward ward;
    ward.b.hangs = true;
    for (const auto advance : {0s, 1s, 6s}) {
      Front front(ward.options());
      EXPECT_EQ(front.asked(), "ababababab");
      ward.clock.advance(advance);
    }
    EXPECT_EQ(ward.b.server.close(), "");
  });
}

TEST_P(ProxyHealthTest, NobodyListens) {
  run_with(GetParam(), [] {
    TestServer works([](Request&, ResponseWriter& res) { res.text("works"); });
    ReverseProxyOptions options{.upstreams = {closed_url(), url_of(works, "")}};
    options.failures_max = 0;
    options.health = {.path = "/", .every = 1ms};
    const ReverseProxy handler(options);
    TestServer proxy(handler);
    EXPECT_EQ(fetch(proxy.address(), get("/")).body, "works");
    while (!handler.stats()[0].unhealthy || handler.stats()[1].checks < 10) sleep_for(1ms);
    const auto tried = handler.stats()[0].requests;
    for (int i = 0; i < 10; ++i) EXPECT_EQ(fetch(proxy.address(), get("/")).body, "works");
    EXPECT_EQ(handler.stats()[0].requests, tried);
    EXPECT_FALSE(handler.stats()[1].unhealthy);
  });
}

TEST_P(ProxyHealthTest, AProxyMayOutliveTheRun) {
  std::unique_ptr<ReverseProxy> handler;
  const int status = tuza::run({.max_procs = GetParam()}, [&] {
    TestServer works([](Request&, ResponseWriter& res) { res.text("works"); });
    ReverseProxyOptions options{.upstreams = {url_of(works, ""), "http://localhost:1"}, .resolve_every = 1ms};
    options.resolve = [](const Context&, std::string_view) {
      return Result<std::vector<std::string>>(std::vector<std::string>{"127.0.0.1:1"});
    };
    options.health = {.path = "/", .every = 1ms};
    handler = std::make_unique<ReverseProxy>(options);
    TestServer proxy(*handler);
    EXPECT_EQ(fetch(proxy.address(), get("/")).body, "works");
    while (handler->stats()[0].checks < 3) sleep_for(1ms);
    return 0;
  });
  EXPECT_EQ(status, 0);
  handler.reset();
}

TEST(HealthCheck, IsChecked) {
  const auto with_health = [](HealthCheck health) {
    return ReverseProxy({.upstreams = {"http://a"}, .health = std::move(health)});
  };
  EXPECT_THROW(with_health({.path = "healthz"}), std::invalid_argument);
  EXPECT_THROW(with_health({.path = "/a\n"}), std::invalid_argument);
  EXPECT_THROW(with_health({.path = "/", .every = 0ms}), std::invalid_argument);
  EXPECT_THROW(with_health({.path = "/", .timeout = 0ms}), std::invalid_argument);
  EXPECT_THROW(with_health({.path = "/", .failures_max = 0}), std::invalid_argument);
  EXPECT_THROW(with_health({.path = "/", .passes_min = 0}), std::invalid_argument);
  EXPECT_NO_THROW(with_health({.path = "/healthz?deep=1"}));
}

TEST_P(ProxyHealthTest, AUrlThatAHookHasSpoiltIsNoFaultOfAnUpstream) {
  run_with(GetParam(), [] {
    Ward ward;
    ReverseProxyOptions options = ward.options();
    options.failures_max = 1;
    options.rewrite = [](const Request& in, ClientRequest& out) {
      Url url = *out.url();
      if (in.query() == "spoilt") url.target = "/a b";
      out.set_url(std::move(url));
    };
    Front front(std::move(options));
    for (int i = 0; i < 4; ++i) {
      const auto res = front.server.client().get(kNoContext, front.server.url() + "?spoilt");
      EXPECT_EQ(res->status(), 500);
    }
    EXPECT_TRUE(front.asked().contains('a'));
    EXPECT_TRUE(front.asked().contains('b'));
    for (const UpstreamStats& one : front.proxy.stats()) EXPECT_EQ(one.failures, 0U);
  });
}

}  // namespace
}  // namespace tuza::http::testing
