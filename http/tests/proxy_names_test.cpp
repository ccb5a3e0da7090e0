// Upstreams of a proxy whose names are looked up again and again.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;
using Places = Result<std::vector<std::string>>;

class ProxyNamesTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyNamesTest);

// What "http://app.internal:81" stands for, now.
class Names {
 public:
  explicit Names(Places places) : places_(std::move(places)) {}
  void set(Places places) {
    const std::scoped_lock lock(mutex_);
    places_ = std::move(places);
  }
  ReverseProxyOptions options() {
    ReverseProxyOptions made{.upstreams = {"http://app.internal:81"}, .resolve_every = 1ms};
    made.resolve = [this](const Context&, std::string_view host_port) -> Places {
      EXPECT_EQ(host_port, "app.internal:81");
      const std::scoped_lock lock(mutex_);
      return places_;
    };
    return made;
  }

 private:
  Mutex mutex_;
  Places places_;
};

// Three servers that answer their numbers.
struct Three {
  static Handler says(const char* number) {
    return [number](Request&, ResponseWriter& res) { res.text(number); };
  }
  [[nodiscard]] std::vector<std::string> places(std::string_view numbers) const {
    std::vector<std::string> all;
    for (const char number : numbers)
      all.push_back(servers[static_cast<std::size_t>(number - '0')].address());
    return all;
  }
  std::array<TestServer, 3> servers{TestServer(says("0")), TestServer(says("1")), TestServer(says("2"))};
};

std::string names_of(const ReverseProxy& proxy) {
  std::string all;
  for (const UpstreamStats& one : proxy.stats()) all += one.name + " ";
  return all;
}

std::set<std::string> asked(const TestServer& proxy) {
  std::set<std::string> answers;
  for (int i = 0; i < 10; ++i) answers.insert(fetch(proxy.address(), get("/")).body);
  return answers;
}

TEST_P(ProxyNamesTest, FollowsAddresses) {
  run_with(GetParam(), [] {
    const Three three;
    Names names(three.places("101"));
    const ReverseProxy handler(names.options());
    TestServer proxy(handler);
    EXPECT_EQ(asked(proxy), (std::set<std::string>{"0", "1"}));
    const auto wait_for = [&](std::string_view numbers) {
      std::string wanted;
      for (const std::string& place : three.places(numbers))
        wanted += "http://app.internal:81@" + place + " ";
      while (names_of(handler) != wanted) sleep_for(1ms);
    };
    const std::uint64_t before = handler.stats()[1].requests;
    names.set(three.places("12"));
    wait_for("12");
    EXPECT_EQ(asked(proxy), (std::set<std::string>{"1", "2"}));
    EXPECT_GT(handler.stats()[0].requests, before) << "one that stays keeps its counts";
    for (Places nothing : {Places(std::unexpected(Error(Errc::kResolverFailed, "resolve"))), Places()}) {
      names.set(nothing);
      sleep_for(5ms);
      EXPECT_EQ(asked(proxy), (std::set<std::string>{"1", "2"})) << "what was known stays";
    }
    names.set(three.places("0"));
    wait_for("0");
    EXPECT_EQ(asked(proxy), std::set<std::string>{"0"});
  });
}

TEST_P(ProxyNamesTest, ALookupThatThrowsHasFailed) {
  run_with(GetParam(), [] {
    const Three three;
    Names names(three.places("0"));
    ReverseProxyOptions options = names.options();
    std::atomic<int> lookups = 0;
    options.resolve = [&](const Context&, std::string_view) -> Places {
      if (++lookups == 2) throw std::runtime_error("no JSON");
      if (lookups == 3) throw 7;
      return three.places("0");
    };
    TestServer proxy{ReverseProxy(options)};
    EXPECT_EQ(fetch(proxy.address(), get("/")).body, "0");
    for (int turn = 0; turn < 5'000 && lookups < 4; ++turn) sleep_for(1ms);
    EXPECT_EQ(fetch(proxy.address(), get("/")).body, "0");
  });
}

TEST_P(ProxyNamesTest, WhatIsNoAddressIsLeftOut) {
  run_with(GetParam(), [] {
    const Three three;
    std::vector<std::string> places = three.places("02");
    const std::string named = "localhost" + places[1].substr(places[1].rfind(':'));
    places[1] = named;  // as SRV records have them
    for (const char* const garbage :
         {"", "10.0.0.1", "10.0.0.1:", "::1", "[::1]", "a b:80", "a:80/x", "a?:80", "http://a:80", "u@a:80",
          "a:http", "10.0.0.1:80#x", "unix:80", "*:80", "127%2e0.0.1:80", "a:0", "a:65536", "a:80\r\nX: y"})
      places.emplace_back(garbage);
    Names names(places);
    const ReverseProxy handler(names.options());
    TestServer proxy{handler};
    EXPECT_EQ(asked(proxy), (std::set<std::string>{"0", "2"}));
    EXPECT_EQ(handler.stats().size(), 2u);
    names.set(std::vector<std::string>{"garbage"});
    sleep_for(5ms);
    EXPECT_EQ(handler.stats().size(), 2u) << "what was known stays";
  });
}

TEST_P(ProxyNamesTest, ARequestEndsWhileTheFirstLookupHangs) {
  run_with(GetParam(), [] {
    ReverseProxyOptions options{.upstreams = {"http://app.internal:81"}, .resolve_every = 1h};
    options.resolve = [](const Context& ctx, std::string_view) -> Places {
      (void)sleep_for(ctx, 1h);
      return std::unexpected(ctx.cause());
    };
    const ReverseProxy handler(std::move(options));
    TestServer proxy(handler, {.request_timeout = 20ms});
    EXPECT_EQ(fetch(proxy.address(), get("/")).status, 504);
  });
}

TEST_P(ProxyNamesTest, TheFirstRequestsWaitForTheFirstLookup) {
  run_with(GetParam(), [] {
    const Three three;
    Names names(three.places("0"));
    ReverseProxyOptions options = names.options();
    Semaphore looks_up{0}, may_answer{0};
    options.resolve_every = 1h;
    options.resolve = [&](const Context&, std::string_view) -> Places {
      looks_up.release();
      may_answer.acquire();
      return three.places("0");
    };
    TestServer proxy{ReverseProxy(options)};
    WaitGroup requests;
    for (int i = 0; i < 5; ++i) requests.go([&] { EXPECT_EQ(fetch(proxy.address(), get("/")).body, "0"); });
    looks_up.acquire();
    {
      RawClient gives_up(proxy.address());
      gives_up.send(get("/"));
    }
    may_answer.release();
    requests.wait();
    EXPECT_FALSE(looks_up.try_acquire()) << "once for all";
  });
}

TEST_P(ProxyNamesTest, WithoutAnAddressThereIsNoAnswer) {
  run_with(GetParam(), [] {
    const Three three;
    Names names(std::unexpected(Error(Errc::kNoSuchHost, "resolve")));
    TestServer proxy{ReverseProxy(names.options())};
    EXPECT_EQ(fetch(proxy.address(), get("/")).status, 502);
    names.set(three.places("2"));
    while (fetch(proxy.address(), get("/")).body != "2") sleep_for(1ms);
  });
}

TEST_P(ProxyNamesTest, AsksTheSystem) {
  run_with(GetParam(), [] {
    TestServer upstream([](Request& req, ResponseWriter& res) { res.text(req.host()); });
    const std::string port = upstream.address().substr(upstream.address().rfind(':'));
    const std::string name = "localhost" + port, address = "http://127.0.0.1" + port;
    ReverseProxyOptions options{
        .upstreams = {"http://" + name, address}, .resolve_every = 1h, .keep_host = false};
    const ReverseProxy handler(options);
    TestServer proxy(handler);
    EXPECT_EQ(asked(proxy), (std::set<std::string>{name, "127.0.0.1" + port}));
    EXPECT_NE((" " + names_of(handler)).find(" " + address + " "), std::string::npos)
        << "an address stays one";
    EXPECT_NE(names_of(handler).find("http://" + name + "@127.0.0.1" + port), std::string::npos);
  });
}

TEST_P(ProxyNamesTest, HealthChecksFollow) {
  run_with(GetParam(), [] {
    const Three three;
    Names names(three.places("0"));
    ReverseProxyOptions options = names.options();
    options.health = {.path = "/", .every = 1ms};
    const ReverseProxy handler(options);
    TestServer proxy(handler);
    const auto checks = [&](const std::string& place) {
      for (const UpstreamStats& one : handler.stats()) {
        if (one.name.ends_with("@" + place)) return one.checks;
      }
      return std::uint64_t{0};
    };
    EXPECT_EQ(asked(proxy), std::set<std::string>{"0"});
    for (const char* number : {"0", "1", "2", "0"}) {
      names.set(three.places(number));
      while (checks(three.places(number)[0]) < 3) sleep_for(1ms);
      EXPECT_EQ(handler.stats().size(), 1u);
    }
  });
}

TEST(ProxyNames, AreChecked) {
  const auto proxy = [](std::vector<std::string> upstreams, ClientOptions client) {
    return ReverseProxy(
        {.upstreams = std::move(upstreams), .resolve_every = 1s, .client = std::move(client)});
  };
  EXPECT_THROW(proxy({"http://"}, {}), std::invalid_argument);
  EXPECT_THROW(proxy({"http://app"}, {.proxy = {.http = "http://proxy"}}), std::invalid_argument);
  EXPECT_NO_THROW(proxy({"http://app", "https://10.0.0.1", "http://[::1]:81", "unix:/run/x"}, {}));
}

}  // namespace
}  // namespace tuza::http::testing
