// The connections of a client: limits, waiting, idling, and where they lead.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/netpoll/tests/fake_resolver.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/chan.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include <unistd.h>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::scaled;
using tuza::testing::WithProcs;

class ClientPoolTest : public WithProcs {};
TUZA_WITH_PROCS(ClientPoolTest);

void expect_settled(const Client& client, std::size_t open_max) {
  for (int i = 0; i < 2'000 && client.stats().open != client.stats().idle; ++i) sleep_for(1ms);
  const ClientStats stats = client.stats();
  EXPECT_EQ(stats.open, stats.idle);
  EXPECT_LE(stats.open, open_max);
  EXPECT_EQ(stats.waiting, 0u);
}

// Counts the requests that are served at once.
struct Busy {
  std::atomic<int> now{0}, most{0};
  void serve(ResponseWriter& res) {
    const int all = ++now;
    for (int most_so_far = most; all > most_so_far && !most.compare_exchange_weak(most_so_far, all);) {
    }
    sleep_for(std::chrono::microseconds(200));
    --now;
    res.send("text/plain", "ok");
  }
};

TEST_P(ClientPoolTest, HoldsItsLimitsWhileManyWaitAndGiveUp) {
  run_with(GetParam(), [] {
    constexpr int kPlaces = 10;
    Busy busy;
    TestServer server([&](Request&, ResponseWriter& res) { busy.serve(res); });
    Client client({.connections_per_origin_max = kPlaces});
    std::atomic<int> answered{0}, gave_up{0}, failed{0};
    const int callers = scaled(1'000);
    WaitGroup group;
    for (int i = 0; i < callers; ++i) {
      group.go([&, i] {
        rt::Random random(static_cast<std::uint64_t>(i) + 1);
        const auto limited = with_timeout(kNoContext, std::chrono::microseconds(random.below(20'000)));
        const bool patient = i % 2 == 0;
        Result<ClientResponse> res = client.get(patient ? kNoContext : limited.ctx(), url_of(server));
        EXPECT_LE(client.stats().open, static_cast<std::size_t>(kPlaces));
        if (res && res->status() == 200) ++answered;
        if (!res) ++(res.error().timeout() && !patient ? gave_up : failed);
      });
    }
    group.wait();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(answered + gave_up, callers);
    EXPECT_GE(answered, callers / 2);
    expect_settled(client, kPlaces);
    EXPECT_EQ(client.get(kNoContext, url_of(server))->body(), "ok") << "no place was lost";
  });
}

TEST_P(ClientPoolTest, WhoWaitsInVainLearnsThatItHasOnlyWaited) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int) {
      if (!ScriptedServer::read_request(conn).empty()) wait_for_end(conn);
    });
    Client client({.connections_per_origin_max = 1});
    WaitGroup first;
    const CancellableContext until = with_cancel(kNoContext);
    first.go([&] { EXPECT_FALSE(client.get(until.ctx(), server.url())); });
    for (int turn = 0; turn < 5'000 && client.stats().open == 0; ++turn) sleep_for(1ms);
    const CancellableContext limited = with_cancel(kNoContext);
    first.go([&] {
      while (client.stats().waiting == 0) sleep_for(1ms);
      limited.cancel(Error(Errc::kTimeout, "a deadline"));
    });
    const Result<ClientResponse> second = client.get(limited.ctx(), server.url());
    EXPECT_TRUE(second.error().timeout());
    EXPECT_TRUE(second.error().message().starts_with("GET " + server.url() + ": wait for a connection: "))
        << second.error().message();
    until.cancel();
    first.wait();
  });
}

// Two origins, and fewer places than both could use: what one gives up, the other gets.
TEST_P(ClientPoolTest, SharesItsPlacesAmongOrigins) {
  run_with(GetParam(), [] {
    Busy busy;
    const auto handler = [&](Request&, ResponseWriter& res) { busy.serve(res); };
    TestServer first(handler), second(handler);
    Client client({.connections_per_origin_max = 3, .connections_max = 4});
    WaitGroup group;
    std::atomic<int> answered{0};
    const int callers = scaled(400);
    for (int i = 0; i < callers; ++i) {
      group.go([&, i] {
        Result<ClientResponse> res = client.get(kNoContext, url_of(i % 2 == 0 ? first : second));
        if (res && res->body() == "ok") ++answered;
      });
    }
    group.wait();
    EXPECT_EQ(answered, callers);
    EXPECT_LE(busy.most, 4);
    expect_settled(client, 4);
  });
}

// A kept connection on which more has come than its response, or its end, is nobody's next one: not that of a caller that waits
// for it, either.
TEST_P(ClientPoolTest, WhoWaitsGetsNoConnectionOnWhichSomethingHasCome) {
  run_with(GetParam(), [] {
    const std::string body(10'000, 'x');  // there is room for it in a socket
    for (const bool evil : {true, false}) {
      Chan<int> go_on(1), said(1);
      ScriptedServer server([&](net::Conn& conn, int number) {
        if (ScriptedServer::read_request(conn).empty()) return;
        if (number > 0) {
          (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
          return wait_for_end(conn);
        }
        (void)go_on.recv();
        (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + body);
        if (evil) (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL");
        if (!evil) (void)conn.close_write();
        wait_until_delivered(conn);
        said.send(1);
        if (evil) wait_for_end(conn);
      });
      Client client({.connections_per_origin_max = 1});
      WaitGroup group;
      group.go([&] {
        ClientRequest request(Method::kGet, server.url());
        Result<ClientResponse> res = client.send(kNoContext, request);
        (void)said.recv();
        EXPECT_EQ(res->body(), body);
      });
      for (int turn = 0; turn < 5'000 && client.stats().open == 0; ++turn) sleep_for(1ms);
      group.go([&] { EXPECT_EQ(client.post(kNoContext, server.url(), "a/b", "text")->body(), "ok"); });
      for (int turn = 0; turn < 5'000 && client.stats().waiting == 0; ++turn) sleep_for(1ms);
      go_on.send(1);
      group.wait();
    }
  });
}

// A read of the body may see the first byte of what follows: that belongs to no response, and neither does the rest.
TEST_P(ClientPoolTest, KeepsNoConnectionBehindWhoseBodyMoreHasCome) {
  run_with(GetParam(), [] {
    for (const bool with_source : {false, true}) {
      Chan<int> go_on(1), said(1);
      ScriptedServer server([&](net::Conn& conn, int) {
        if (ScriptedServer::read_request(conn).empty()) return;
        (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
        (void)go_on.recv();
        (void)conn.write_all("okEVIL");
        wait_until_delivered(conn);
        said.send(1);
        wait_for_end(conn);
      });
      Client client;
      ClientRequest request(with_source ? Method::kPost : Method::kGet, server.url());
      const auto nothing = [](std::span<std::byte>) -> Result<std::size_t> { return 0; };
      if (with_source) request.set_body_source(nothing).keep_sending();
      Result<ClientResponse> res = client.send(kNoContext, request);
      go_on.send(1);
      (void)said.recv();
      std::byte room[16];
      EXPECT_EQ(res->read(room).value(), 2u);
      expect_settled(client, 0);
    }
  });
}

// A client for the whole program outlives tuza::run, which leaves goroutines behind.
TEST(ClientPoolRuns, WhoWaitsAtTheEndOfARunIsForgotten) {
  Client client({.connections_per_origin_max = 1});
  for (int run = 0; run < 2; ++run) {
    tuza::run([&] {
      const net::Listener silent = net::listen("tcp", "127.0.0.1:0").value();
      const std::string url = "http://" + silent.address() + "/";
      for (int i = 0; i < 3; ++i) go([&client, url] { (void)client.get(kNoContext, url); });
      for (int turn = 0; turn < 5'000 && client.stats().waiting < 2; ++turn) sleep_for(1ms);
      EXPECT_EQ(client.stats().waiting, 2u);
    });
  }
}

TEST_P(ClientPoolTest, ServesThoseThatWaitInTheirOrder) {
  run_with(GetParam(), [] {
    Chan<int> order(10);
    Chan<bool> go_on;
    TestServer server([&](Request&, ResponseWriter& res) {
      (void)go_on.recv();
      res.send("text/plain", "ok");
    });
    Client client({.connections_per_origin_max = 1});
    WaitGroup group;
    for (int i = 0; i < 5; ++i) {
      group.go([&, i] {
        Result<ClientResponse> res = client.get(kNoContext, url_of(server));
        order.send(i);  // before the connection goes back
        EXPECT_EQ(res->body(), "ok");
      });
      const std::size_t waiting = static_cast<std::size_t>(i);
      for (int turn = 0; turn < 5'000 && (client.stats().waiting != waiting || client.stats().open == 0);
           ++turn)
        sleep_for(1ms);
    }
    for (int i = 0; i < 5; ++i) go_on.send(true);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(order.recv(), i);
    group.wait();
  });
}

TEST_P(ClientPoolTest, KeepsFewIdleConnectionsAndNotForLong) {
  run_with(GetParam(), [] {
    TestServer server([](Request&, ResponseWriter& res) { res.send("text/plain", "ok"); });
    const auto use = [&](Client& client, int at_once) {
      std::vector<ClientResponse> held;
      for (int i = 0; i < at_once; ++i) {
        ClientRequest request(Method::kGet, url_of(server));
        held.push_back(client.send(kNoContext, request).value());
      }
    };
    Client none({.idle_per_origin_max = 0});
    use(none, 1);
    expect_settled(none, 0);
    Client brief({.idle_timeout = 20ms});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(brief.get(kNoContext, url_of(server))->body(), "ok");
      for (int turn = 0; turn < 5'000 && brief.stats().open > 0; ++turn) sleep_for(1ms);
      EXPECT_EQ(brief.stats().open, 0u);
    }
    EXPECT_EQ(brief.stats().dialled, 3u);
  });
}

TEST_P(ClientPoolTest, EvictsTheOldestIdleConnection) {
  run_with(GetParam(), [] {
    const auto ok = [](Request&, ResponseWriter& res) { res.send("text/plain", "ok"); };
    TestServer a(ok), b(ok), c(ok);
    Client client({.connections_max = 2});
    const auto ask = [&](const TestServer& server) {
      EXPECT_EQ(client.get(kNoContext, url_of(server))->body(), "ok");
    };
    ask(a);
    ask(b);
    ask(a);  // now b is the oldest
    EXPECT_EQ(client.stats().dialled, 2u);
    ask(c);
    ask(a);
    EXPECT_EQ(client.stats().dialled, 3u);
    ask(b);
    EXPECT_EQ(client.stats().dialled, 4u);
    expect_settled(client, 2);
  });
}

TEST_P(ClientPoolTest, SurvivesAServerThatRestarts) {
  run_with(GetParam(), [] {
    const auto serve = [](std::string_view address, const std::function<void(const std::string& url)>& use) {
      http::Server server([](Request&, ResponseWriter& res) { res.send("text/plain", "ok"); });
      ASSERT_TRUE(server.listen(net::listen("tcp", address).value()));
      WaitGroup group;
      group.go([&] { (void)server.serve(); });
      use("http://" + net::to_string(server.endpoint()) + "/");
      server.shutdown();
      group.wait();
    };
    Client client;
    std::string address = "127.0.0.1:0";
    for (int round = 0; round < 3; ++round) {
      std::string url;
      serve(address, [&](const std::string& here) {
        url = here;
        EXPECT_EQ(client.post(kNoContext, url, "a/b", "x")->body(), "ok") << "no dead connection is used";
        WaitGroup group;
        for (int i = 0; i < 10; ++i) group.go([&] { EXPECT_EQ(client.get(kNoContext, url)->body(), "ok"); });
        group.wait();
      });
      EXPECT_TRUE(client.get(kNoContext, url).error().is(std::errc::connection_refused));
      address = Url::parse(url)->address();
    }
  });
}

TEST_P(ClientPoolTest, LeavesAResponseThatOutlivesItsClient) {
  run_with(GetParam(), [] {
    TestServer server(
        [](Request&, ResponseWriter& res) { res.send("text/plain", std::string(100'000, 'x')); });
    std::optional<ClientResponse> response;
    {
      Client client;
      response = client.get(kNoContext, url_of(server)).value();
    }
    EXPECT_EQ(response->body()->size(), 100'000u);
  });
}

// A request that is repeated waits for a place behind others, and is given a connection that one of them has used: it dials
// nevertheless, as a second one that is gone would be an error.
TEST_P(ClientPoolTest, RepeatsOverAFreshConnectionAlsoWhereItWaitsForAPlace) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int) {  // serves one request of each connection
      if (ScriptedServer::read_request(conn).empty()) return;
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      (void)ScriptedServer::read_request(conn);
    });
    Client client({.connections_per_origin_max = 1});
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(client.get(kNoContext, server.url())->body(), "ok");
      WaitGroup group;
      for (int i = 0; i < 8; ++i) {
        group.go([&] {
          Result<ClientResponse> res = client.get(kNoContext, server.url());
          ASSERT_TRUE(res) << res.error().message();
          EXPECT_EQ(res->body(), "ok");
        });
      }
      group.wait();
    }
    expect_settled(client, 1);
  });
}

// Callers of one origin, more than there are places, all the time; one of another origin gets its turn.
TEST_P(ClientPoolTest, StarvesNoOrigin) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop{false};
    const auto ok = [](Request&, ResponseWriter& res) { res.send("text/plain", "ok"); };
    TestServer busy(ok), rare(ok);
    Client client({.connections_max = 2});
    WaitGroup group;
    for (int i = 0; i < 8; ++i) {
      group.go([&] {
        while (!stop) EXPECT_EQ(client.get(kNoContext, url_of(busy))->body(), "ok");
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_EQ(client.get(kNoContext, url_of(rare))->body(), "ok");
    stop = true;
    group.wait();
    expect_settled(client, 2);
  });
}

// Its connections, and the timer that would close them, outlive the run.
void use_static_client() {
  static Client client;
  const int status = run([] {
    TestServer server([](Request&, ResponseWriter& res) { res.send("text/plain", "ok"); });
    return client.get(kNoContext, url_of(server))->body() == "ok" && client.stats().idle == 1 ? 0 : 1;
  });
  std::exit(status);
}

TEST(ClientDeathTest, MayBeStatic) { EXPECT_EXIT(use_static_client(), ::testing::ExitedWithCode(0), ""); }

// -- TLS and local sockets

class ClientTlsTest : public net::testing::TlsTest {};

// A close_notify, and an answer that nobody has asked for, come encrypted, as tickets do.
TEST_F(ClientTlsTest, LooksIntoWhatHasComeOnAKeptConnection) {
  const auto tls = net::TlsServer::load(server_options()).value();
  run_with(2, [&] {
    for (const bool evil : {true, false}) {
      Chan<int> go_on(1), said(1);
      const auto script = [&](net::Conn& conn, int number) {
        if (ScriptedServer::read_request(conn).empty()) return;
        (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        if (number > 0) return wait_for_end(conn);
        (void)go_on.recv();
        if (evil) (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL");
        if (!evil) (void)conn.close_write();
        wait_until_delivered(conn);
        said.send(1);
        wait_for_end(conn);
      };
      ScriptedServer server(script, tls);
      Client client({.tls = {.ca_file = authority_.file()}});
      const std::string url = "https" + server.url().substr(4);
      EXPECT_EQ(client.post(kNoContext, url, "a/b", "text")->body(), "ok");
      go_on.send(1);
      (void)said.recv();
      EXPECT_EQ(client.post(kNoContext, url, "a/b", "text")->body(), "ok");
      EXPECT_EQ(server.connections(), 2);
    }
  });
}

// What came in one record with the response has left the socket: only the TLS layer knows of it. The response is longer than what
// is read with its head, so that the rest of the record stays there.
TEST_F(ClientTlsTest, LooksIntoWhatHasComeWithTheLastResponse) {
  const auto tls = net::TlsServer::load(server_options()).value();
  run_with(2, [&] {
    const std::string body(12'000, 'x');
    for (const bool evil : {true, false}) {
      const auto script = [&](net::Conn& conn, int) {
        for (int i = 0; i < 3 && !ScriptedServer::read_request(conn).empty(); ++i) {
          std::string all = "HTTP/1.1 200 OK\r\nContent-Length: 12000\r\n\r\n" + body;
          if (evil) all += "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
          (void)conn.write_all(all);
        }
        wait_for_end(conn);
      };
      ScriptedServer server(script, tls);
      Client client({.tls = {.ca_file = authority_.file()}});
      for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(client.post(kNoContext, "https" + server.url().substr(4), "a/b", "text")->body() == body)
            << i;
      EXPECT_EQ(server.connections(), evil ? 3 : 1);
    }
  });
}

TEST_F(ClientTlsTest, VerifiesTheServerAndItsName) {
  net::testing::Authority other("Another authority");
  const auto tls = net::TlsServer::load(server_options()).value();
  run_with(2, [&] {
    TestServer server(
        [](Request& req, ResponseWriter& res) { res.send("text/plain", req.tls_info()->version); }, {}, tls);
    const std::string port = server.address().substr(server.address().find(':'));
    Client client({.tls = {.ca_file = authority_.file()}});
    for (const char* host : {"localhost", "127.0.0.1"}) {
      for (int i = 0; i < 3; ++i) {
        Result<ClientResponse> res = client.get(kNoContext, "https://" + std::string(host) + port + "/");
        ASSERT_TRUE(res) << res.error().message();
        EXPECT_EQ(res->body(), "TLSv1.3");
      }
    }
    EXPECT_EQ(client.stats().dialled, 2u) << "two origins";
    Client named({.address = server.address(), .tls = {.ca_file = authority_.file()}});
    EXPECT_EQ(named.get(kNoContext, "https://localhost/")->body(), "TLSv1.3");
    const Result<ClientResponse> wrong = named.get(kNoContext, "https://example.org/");
    ASSERT_FALSE(wrong);
    EXPECT_TRUE(net::is_tls_error(wrong.error())) << wrong.error().message();
    Client stranger({.tls = {.ca_file = other.file()}});
    EXPECT_FALSE(stranger.get(kNoContext, "https://localhost" + port + "/"));
    EXPECT_FALSE(client.get(kNoContext, "http://localhost" + port + "/")->status() == 200);
    for (const Client* each : {&client, &named, &stranger}) expect_settled(*each, 2);
  });
}

TEST_P(ClientPoolTest, ReachesAUnixSocket) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tuza-client-" + std::to_string(getpid()) + ".sock"))
          .string();
  run_with(GetParam(), [&] {
    http::Server server([](Request& req, ResponseWriter& res) { res.send("text/plain", req.host()); });
    ASSERT_TRUE(server.listen(net::listen("unix", path).value()));
    WaitGroup group;
    group.go([&] { (void)server.serve(); });
    {
      Client client({.address = "unix:" + path});
      EXPECT_EQ(client.get(kNoContext, "http://docker/containers")->body(), "docker");
      EXPECT_EQ(client.get(kNoContext, "http://docker/containers")->body(), "docker");
      EXPECT_EQ(client.stats().dialled, 1u);
    }
    server.shutdown();
    group.wait();
  });
}

// "http://unix:80" was once dialled as a socket in the file "80".
TEST_P(ClientPoolTest, ReachesAHostThatIsNamedUnix) {
  const net::testing::FakeResolver names({{"unix", {.addresses = {"127.0.0.1"}}}});
  run_with(GetParam(), [] {
    const TestServer server([](Request&, ResponseWriter& res) { res.text("here"); });
    const std::string url = "http://unix" + server.address().substr(server.address().rfind(':'));
    Client client;
    EXPECT_EQ(client.get(kNoContext, url)->body(), "here");
    for (const auto resolve_every : {0ms, 1'000ms}) {
      const TestServer proxy(ReverseProxy({.upstreams = {url}, .resolve_every = resolve_every}));
      EXPECT_EQ(client.get(kNoContext, url_of(proxy))->body(), "here");
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
