// The Via field, and requests that come back to the proxy that has passed them on.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxyLoopTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyLoopTest);

TEST_P(ProxyLoopTest, SaysThatItIsThere) {
  run_with(GetParam(), [] {
    TestServer upstream([](Request& req, ResponseWriter& res) {
      std::string all;
      for (const auto& [name, value] : req.headers()) {
        if (name == "Via") all.append(value).append(";");
      }
      res.text(all);
    });
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}, .via = "edge"}));
    TestServer outer(ReverseProxy({.upstreams = {url_of(proxy, "")}, .via = "edge"}));
    const std::string via =
        fetch(outer.address(), "GET / HTTP/1.0\r\nHost: a\r\nVia: 1.1 a (edge-, b)\r\n\r\n").body;
    EXPECT_TRUE(via.starts_with("1.1 a (edge-, b);1.0 edge-")) << via;
    EXPECT_NE(via.find(";1.1 edge-"), std::string::npos) << via;
    EXPECT_THROW(ReverseProxy({.upstreams = {"http://a"}, .via = "a b"}), std::invalid_argument);
  });
}

// RFC 9110 7.6.2
TEST_P(ProxyLoopTest, CountsForwardsWhereTheClientAsksForThat) {
  run_with(GetParam(), [] {
    TestServer upstream(
        [](Request& req, ResponseWriter& res) { res.text(req.header("Max-Forwards").value_or("none")); });
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}}));
    const auto ask = [&](const std::string& method, const std::string& value) {
      const Response res =
          fetch(proxy.address(), method + " / HTTP/1.1\r\nHost: a\r\nMax-Forwards: " + value +
                                     "\r\nConnection: close\r\n\r\n");
      return std::to_string(res.status) + " " + res.body;
    };
    EXPECT_EQ(ask("OPTIONS", "10"), "200 9");
    EXPECT_EQ(ask("OPTIONS", "1"), "200 0");
    EXPECT_EQ(ask("OPTIONS", "0"), "204 ");
    EXPECT_TRUE(ask("TRACE", "0").starts_with("501 "));
    EXPECT_EQ(ask("OPTIONS", "x"), "200 x");
    EXPECT_EQ(ask("OPTIONS", "99999999999"), "200 99999999999");
    EXPECT_EQ(ask("GET", "0"), "200 0") << "of other methods nothing is said";
  });
}

// The server of a proxy, which knows its address only when it exists already.
struct ProxyOf {
  ProxyOf() : server([this](Request& req, ResponseWriter& res) { (*made.load())(req, res); }) {}
  void make(ReverseProxyOptions options) { made = &proxy.emplace(std::move(options)); }
  std::optional<ReverseProxy> proxy;
  std::atomic<const ReverseProxy*> made = nullptr;  // for the handler: nothing else orders the two
  TestServer server;
};

TEST_P(ProxyLoopTest, StopsARequestThatGoesRoundInALoop) {
  run_with(GetParam(), [] {
    ProxyOf here, there;
    here.make({.upstreams = {url_of(there.server, ""), url_of(here.server, "")}});
    there.make({.upstreams = {url_of(here.server, "")}});
    EXPECT_EQ(fetch(here.server.address(), get("/")).status, 508);
    EXPECT_EQ(fetch(there.server.address(), post("/", "x")).status, 508);
    EXPECT_LE(here.proxy->stats()[0].requests + here.proxy->stats()[1].requests, 8u);
    for (const UpstreamStats& one : here.proxy->stats()) EXPECT_EQ(one.failures, 0u);
    // The same proxy, by another path: meant so.
    TestServer end([](Request&, ResponseWriter& res) { res.text("end"); });
    ReverseProxyOptions options{.upstreams = {url_of(here.server, "")}};
    options.rewrite = [&](const Request& req, ClientRequest& out) {
      Url url = *out.url();
      url.target += "x";
      if (req.target() == "/xxx") url = Url::parse(url_of(end)).value();
      out.set_url(std::move(url));
    };
    here.make(options);
    EXPECT_EQ(fetch(here.server.address(), get("/")).body, "end");
  });
}

}  // namespace
}  // namespace tuza::http::testing
