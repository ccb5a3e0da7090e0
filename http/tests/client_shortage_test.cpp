// A client, and a reverse proxy, in a process without descriptors.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/netpoll/tests/no_more_descriptors.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::scaled;
using tuza::testing::WithProcs;

class ClientShortageTest : public WithProcs {};
TUZA_WITH_PROCS(ClientShortageTest);

void ok(Request&, ResponseWriter& res) { res.text("ok"); }

// A client that finds no descriptor to dial with as long as `short_of` is set.
struct ShortClient {
  ClientOptions options(ClientOptions made = {}) {
    made.dial = [this](const Context& ctx, const Url& url) -> Result<net::Conn> {
      ++dials;
      if (short_of) return std::unexpected(Error::from_errno(EMFILE, "dial"));
      return net::dial(ctx, "tcp", url.address());
    };
    return made;
  }
  std::atomic<bool> short_of{false};
  std::atomic<int> dials{0};
};

void wait_until_waiting(const Client& client, std::size_t callers) {
  for (int turn = 0; turn < 10'000 && client.stats().waiting != callers; ++turn) sleep_for(1ms);
  ASSERT_EQ(client.stats().waiting, callers);
}

TEST_P(ClientShortageTest, CallersShareTheConnectionsThatThereAre) {
  run_with(GetParam(), [] {
    std::atomic<int> begun{0};
    TestServer server([&](Request& req, ResponseWriter& res) {
      if (req.path() == "/first") {
        ++begun;
        tuza::testing::yield_until([&] { return begun == 3; });
      }
      sleep_for(std::chrono::microseconds(200));
      res.text("ok");
    });
    Client client;
    {
      WaitGroup group;
      for (int i = 0; i < 3; ++i)
        group.go([&] { EXPECT_EQ(client.get(kNoContext, url_of(server, "/first"))->body(), "ok"); });
      group.wait();
    }
    const net::testing::NoMoreDescriptors limit;
    std::atomic<int> answered{0};
    const int callers = scaled(300);
    {
      WaitGroup group;
      for (int i = 0; i < callers; ++i) {
        group.go([&, i] {
          const bool posts = i % 3 == 0;
          Result<ClientResponse> res = posts ? client.post(kNoContext, url_of(server), "a/b", "text")
                                             : client.get(kNoContext, url_of(server));
          if (res && res->body() == "ok") ++answered;
        });
      }
      group.wait();
    }
    EXPECT_EQ(answered, callers);
    EXPECT_LE(client.stats().open, 3u);
    EXPECT_EQ(client.stats().waiting, 0u);
    EXPECT_EQ(client.stats().open, client.stats().idle) << "no place was lost";
  });
}

TEST_P(ClientShortageTest, AnIdleConnectionToAnotherServerIsClosed) {
  run_with(GetParam(), [] {
    TestServer a(ok), b(ok);
    ShortClient scarce;
    ClientOptions options = scarce.options();
    options.dial = [&, dial = options.dial](const Context& ctx, const Url& url) {
      Result<net::Conn> conn = dial(ctx, url);
      if (url.address() == b.address()) scarce.short_of = false;  // what is closed now helps the next one
      return conn;
    };
    Client client(options);
    EXPECT_EQ(client.get(kNoContext, url_of(a))->body(), "ok");
    scarce.short_of = true;
    EXPECT_EQ(client.get(kNoContext, url_of(b))->body(), "ok");
    EXPECT_EQ(client.stats().open, 1u);
    EXPECT_EQ(scarce.dials, 3);
  });
}

TEST_P(ClientShortageTest, AConnectionThatIsClosedMakesRoom) {
  run_with(GetParam(), [] {
    TestServer a([](Request&, ResponseWriter& res) { res.text(std::string(1 << 20, 'x')); }), b(ok);
    ShortClient scarce;
    Client client(scarce.options());
    std::optional<Result<ClientResponse>> open = client.get(kNoContext, url_of(a));
    scarce.short_of = true;
    WaitGroup group;
    for (int i = 0; i < 2; ++i) group.go([&] { EXPECT_EQ(client.get(kNoContext, url_of(b))->body(), "ok"); });
    wait_until_waiting(client, 2);
    scarce.short_of = false;
    open.reset();  // in the middle of its body: the connection ends
    group.wait();
    EXPECT_LE(client.stats().open, 2u);
  });
}

TEST_P(ClientShortageTest, AConnectionThatIsKeptMakesRoomForOneToAnotherServer) {
  run_with(GetParam(), [] {
    TestServer a([](Request&, ResponseWriter& res) { res.text(std::string(1 << 20, 'x')); }), b(ok);
    ShortClient scarce;
    Client client(scarce.options());
    Result<ClientResponse> open = client.get(kNoContext, url_of(a));
    scarce.short_of = true;
    WaitGroup group;
    group.go([&] { EXPECT_EQ(client.get(kNoContext, url_of(b))->body(), "ok"); });
    wait_until_waiting(client, 1);
    scarce.short_of = false;
    EXPECT_EQ(open->body()->size(), 1u << 20);
    group.wait();
    EXPECT_EQ(client.stats().open, 1u) << "that to the first server is closed";
  });
}

TEST_P(ClientShortageTest, NobodyWaitsForNothing) {
  run_with(GetParam(), [] {
    TestServer server([](Request&, ResponseWriter& res) { res.text(std::string(1 << 20, 'x')); });
    ShortClient scarce;
    Client client(scarce.options({.dial_timeout = 50ms}));
    scarce.short_of = true;
    EXPECT_TRUE(client.get(kNoContext, url_of(server)).error().is(std::errc::too_many_files_open));
    EXPECT_EQ(scarce.dials, 1) << "there is no connection that could end";
    scarce.short_of = false;
    Result<ClientResponse> open = client.get(kNoContext, url_of(server));
    scarce.short_of = true;
    EXPECT_TRUE(client.get(kNoContext, url_of(server)).error().is(std::errc::too_many_files_open))
        << "after dial_timeout";
    const auto limited = with_timeout(kNoContext, 10ms);
    EXPECT_TRUE(client.get(limited.ctx(), url_of(server)).error().timeout());
    EXPECT_EQ(client.stats().waiting, 0u);
    EXPECT_EQ(client.stats().open, 1u);
    EXPECT_TRUE(open->body());
  });
}

TEST_P(ClientShortageTest, AProxyAnswers503AndHoldsItAgainstNobody) {
  run_with(GetParam(), [] {
    TestServer upstream(ok);
    ShortClient scarce;
    const ReverseProxy proxy({.upstreams = {url_of(upstream, "")},
                              .failures_max = 1,
                              .health = {.path = "/healthz", .every = 1ms, .failures_max = 1},
                              .client = scarce.options()});
    TestServer front(proxy);
    scarce.short_of = true;
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(fetch(front.address(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").status, 503);
    for (int turn = 0; turn < 10'000 && scarce.dials < 20; ++turn) sleep_for(1ms);
    const UpstreamStats stats = proxy.stats().front();
    EXPECT_EQ(stats.failures, 0u);
    EXPECT_EQ(stats.checks_failed, 0u);
    EXPECT_FALSE(stats.unhealthy || stats.left_out);
    scarce.short_of = false;
    EXPECT_EQ(fetch(front.address(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").body, "ok");
  });
}

}  // namespace
}  // namespace tuza::http::testing
