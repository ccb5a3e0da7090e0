// The upstreams of a proxy: which one is asked, and what happens to those that fail.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/sync/semaphore.h>

#include <algorithm>
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

class ProxyUpstreamsTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyUpstreamsTest);

std::string body_of(const TestServer& proxy, std::string_view request) {
  return fetch(proxy.address(), request).body;
}

TEST_P(ProxyUpstreamsTest, AsksAnotherUpstreamWhereThatIsSafe) {
  run_with(GetParam(), [] {
    TestServer works([](Request& req, ResponseWriter& res) {
      if (const auto body = req.body()) res.text(*body);
    });
    ScriptedServer dies("");
    const auto ask = [&](std::vector<std::string> upstreams, std::string_view request) {
      upstreams.push_back(url_of(works, ""));
      TestServer proxy(ReverseProxy({.upstreams = std::move(upstreams)}));
      return fetch(proxy.address(), request).status;
    };
    const std::string large = post("/", std::string(100'000, 'x'));
    EXPECT_EQ(ask({closed_url(), closed_url()}, get("/")), 200);
    EXPECT_EQ(ask({closed_url()}, post("/", "x")), 200) << "nothing of it was sent";
    EXPECT_EQ(ask({closed_url()}, large), 200) << "nothing of it was read";
    EXPECT_EQ(ask({dies.url("")}, get("/")), 200);
    EXPECT_EQ(ask({dies.url("")}, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"), 200);
    EXPECT_EQ(ask({dies.url("")}, post("/", "x", "Idempotency-Key: 1\r\n")), 200);
    EXPECT_EQ(ask({dies.url("")}, post("/", "x")), 502) << "it may have been done";
    EXPECT_EQ(ask({dies.url("")}, large), 502);
    EXPECT_EQ(ask({closed_url(), closed_url(), closed_url()}, get("/")), 502) << "three tries at most";
  });
}

TEST_P(ProxyUpstreamsTest, LeavesAFailingUpstreamOutForAWhile) {
  run_with(GetParam(), [] {
    std::atomic<bool> works = false;
    ScriptedServer shaky([&](net::Conn& conn, int) {
      while (!ScriptedServer::read_request(conn).empty()) {
        if (!works || !conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshaky")) return;
      }
    });
    TestServer good([](Request&, ResponseWriter& res) { res.text("good"); });
    const ReverseProxyOptions options{.upstreams = {shaky.url(""), url_of(good, "")}, .pause = 1h};
    ReverseProxy patient(options);
    TestServer proxy(patient);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(body_of(proxy, get("/")), "good");
    EXPECT_TRUE(patient.stats()[0].left_out);
    EXPECT_EQ(patient.stats()[0].requests, 3u);
    EXPECT_EQ(patient.stats()[0].failures, 3u);

    ReverseProxyOptions soon = options;
    soon.pause = 1ms;
    ReverseProxy impatient(soon);
    TestServer second(impatient);
    while (!impatient.stats()[0].left_out) EXPECT_EQ(body_of(second, get("/")), "good");
    works = true;
    while (impatient.stats()[0].left_out) (void)body_of(second, get("/"));
    std::vector<std::string> answers{body_of(second, get("/")), body_of(second, get("/"))};
    std::ranges::sort(answers);
    EXPECT_EQ(answers, (std::vector<std::string>{"good", "shaky"}));

    ReverseProxy alone({.upstreams = {closed_url()}, .pause = 1h});
    TestServer third(alone);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fetch(third.address(), get("/")).status, 502);
    EXPECT_EQ(alone.stats()[0].requests, 5u) << "there is no other";
  });
}

// Upstreams that answer their number; "/wait" waits.
struct Numbered {
  explicit Numbered(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      servers.push_back(std::make_unique<TestServer>([this, i](Request& req, ResponseWriter& res) {
        if (req.path() == "/wait") waiting.release(), (void)go_on.acquire(req.context());
        if (broken == i) return void(res.hijack());  // closes without an answer
        res.text(std::to_string(i));
      }));
      urls.push_back(url_of(*servers.back(), ""));
    }
  }
  Semaphore waiting{0}, go_on{0};
  std::atomic<std::size_t> broken = std::size_t(-1);
  std::vector<std::unique_ptr<TestServer>> servers;
  std::vector<std::string> urls;
};

TEST_P(ProxyUpstreamsTest, BalancesByTurnsAndByRequests) {
  run_with(GetParam(), [] {
    Numbered upstreams(3);
    TestServer turns(ReverseProxy({.upstreams = upstreams.urls}));
    std::string answers;
    for (int i = 0; i < 6; ++i) answers += body_of(turns, get("/"));
    EXPECT_EQ(answers, "012012");

    ReverseProxy fewest({.upstreams = upstreams.urls, .balance = Balance::kLeastRequests});
    TestServer proxy(fewest);
    WaitGroup waits;
    for (int i = 0; i < 2; ++i) {
      waits.go([&] { (void)body_of(proxy, get("/wait")); });
      upstreams.waiting.acquire();
    }
    answers.clear();
    for (int i = 0; i < 6; ++i) answers += body_of(proxy, get("/"));
    EXPECT_EQ(answers, std::string(6, answers[0])) << "the others are busy";
    std::size_t active = 0;
    for (const UpstreamStats& one : fewest.stats()) active += one.active;
    EXPECT_EQ(active, 2u);
    upstreams.go_on.release(2);
    waits.wait();
  });
}

TEST_P(ProxyUpstreamsTest, BalancesByKey) {
  run_with(GetParam(), [] {
    Numbered upstreams(4);
    const auto by_key = [](std::vector<std::string> urls) {
      ReverseProxyOptions options{.upstreams = std::move(urls), .balance = Balance::kHash};
      options.hash_key = [](const Request& req) { return std::string(req.header("X-Key").value_or("")); };
      return ReverseProxy(options);
    };
    const auto asked = [](const TestServer& proxy) {
      std::string answers;
      for (int key = 0; key < 60; ++key)
        answers += body_of(proxy, "GET / HTTP/1.1\r\nHost: a\r\nX-Key: k" + std::to_string(key) + "\r\n\r\n");
      return answers;
    };
    TestServer proxy(by_key(upstreams.urls));
    const std::string before = asked(proxy);
    for (const char number : {'0', '1', '2', '3'}) EXPECT_GT(std::ranges::count(before, number), 0) << number;
    TestServer again(by_key({upstreams.urls.rbegin(), upstreams.urls.rend()}));
    EXPECT_EQ(asked(again), before) << "the order does not count";
    upstreams.broken = 2;
    const std::string after = asked(proxy);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i] == '2', after[i] != before[i]) << i;
  });
}

TEST(ReverseProxyOptions, AreChecked) {
  for (const char* bad :
       {"", "10.0.0.1:80", "ftp://a", "http://a/path", "http://a/?q", "http://a:99999", "unix:"})
    EXPECT_THROW(ReverseProxy({.upstreams = {bad}}), std::invalid_argument) << bad;
  EXPECT_THROW(ReverseProxy({}), std::invalid_argument);
  EXPECT_THROW(ReverseProxy({.upstreams = {"http://a"}, .client = {.headers_max = 1000}}),
               std::invalid_argument);
  EXPECT_NO_THROW(ReverseProxy({.upstreams = {"http://a/", "https://[::1]:8443", "unix:/run/x"}}));
}

}  // namespace
}  // namespace tuza::http::testing
