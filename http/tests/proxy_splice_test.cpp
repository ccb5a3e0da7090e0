// Long bodies that the reverse proxy passes back without looking at them: by splice(2) where it can.
#include <gtest/gtest.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/tests/long_body.h>
#include <tuza/netpoll/poll/splice_pipe.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/time/sleep.h>

#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using net::SplicePipe;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxySpliceTest : public WithProcs {};
TUZA_WITH_PROCS(ProxySpliceTest);

std::string answer_with(std::string_view body, std::size_t announced) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(announced) +
         "\r\n\r\n" + std::string(body);
}

// "whole", or what is wrong.
std::string asked_by(Client& client, const std::string& url) {
  Result<ClientResponse> got = client.get(Context::background(), url);
  if (!got) return got.error().message();
  const Result<std::string> body = got->body();
  if (!body) return body.error().message();
  return *body == long_body() ? "whole"
                              : std::to_string(body->size()) + " bytes, begins " + body->substr(0, 100);
}

TEST_P(ProxySpliceTest, LongBodiesArriveAsTheyWereSentAndTheConnectionsStay) {
  run_with(GetParam(), [] {
    const std::string answer = answer_with(long_body(), long_body().size());
    ScriptedServer upstream([&answer](net::Conn& conn, int) {
      // In pieces that end anywhere: the body and the next answer begin in the middle of one.
      while (!ScriptedServer::read_request(conn).empty()) {
        for (std::size_t at = 0, n = 1; at < answer.size(); at += n, n = n * 5 % 300'007 + 1) {
          if (!conn.write_all(std::string_view(answer).substr(at, n))) return;
        }
      }
    });
    const ReverseProxy proxying({.upstreams = {upstream.url("")}});
    TestServer proxy(proxying);
    Client client;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(asked_by(client, url_of(proxy)), "whole");
    EXPECT_EQ(upstream.connections(), 1);
    EXPECT_EQ(proxying.stats().front().failures, 0u);
  });
}

// A client that does not read holds what is on its way in a pipe. It may have stopped while the beginning was copied, and reads
// on then.
TEST_P(ProxySpliceTest, TheBytesDoNotEnterTheProcess) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).empty()) return;
      if (!conn.write_all(answer_with("", std::size_t{64} << 20))) return;
      while (conn.write_all(long_body())) {
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}));
    std::list<RawClient> clients;
    while (clients.size() <= SplicePipe::kKeptMax) {
      clients.emplace_back(proxy.address()).send(get("/"));
    }
    std::vector<char> scrap(256 << 10);
    while (SplicePipe::open_pipes() < clients.size()) {
      for (RawClient& client : clients) ASSERT_TRUE(client.conn().read(std::span(scrap)));
      sleep_for(1ms);
    }
    clients.clear();  // they go away in the middle: a pipe with bytes in it is nobody else's
    while (SplicePipe::open_pipes() > SplicePipe::kKeptMax) sleep_for(1ms);
  });
}

TEST_P(ProxySpliceTest, ABodyThatBreaksOffDoesSoForTheClient) {
  run_with(GetParam(), [] {
    ScriptedServer upstream(answer_with(long_body(), long_body().size() + 1));
    const ReverseProxy proxying({.upstreams = {upstream.url("")}});
    TestServer proxy(proxying);
    RawClient client(proxy.address());
    client.send(get("/"));
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
    EXPECT_TRUE(client.received().ends_with(long_body().substr(kLong - 1000)));
    EXPECT_EQ(proxying.stats().front().failures, 1u);
  });
}

// What comes in small pieces behind a long part does not wait for more.
TEST_P(ProxySpliceTest, ATrickleBehindALongPartArrivesAtOnce) {
  run_with(GetParam(), [] {
    Semaphore may_send(0);
    ScriptedServer upstream([&may_send](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).empty()) return;
      if (!conn.write_all(answer_with(long_body(), long_body().size() + 9))) return;
      for (const char* piece : {"one", "two", "end"}) {
        may_send.acquire();
        if (!conn.write_all(piece)) return;
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}));
    RawClient client(proxy.address());
    client.send(get("/"));
    std::string end = long_body().substr(kLong - 1000);
    for (const char* piece : {"", "one", "two", "end"}) {
      end += piece;
      client.read_until([&] { return client.received().ends_with(end); });
      ASSERT_TRUE(client.received().ends_with(end));
      may_send.release();
    }
  });
}

// What wants to see the body does so, and what is no socket cannot be spliced.
TEST_P(ProxySpliceTest, FiltersTlsAndMemoryGetTheBodyToo) {
  run_with(GetParam(), [] {
    ScriptedServer plain(answer_with(long_body(), long_body().size()));
    TestServer proxy(with(ReverseProxy({.upstreams = {plain.url("")}}), compress()));
    Client client;
    EXPECT_EQ(asked_by(client, url_of(proxy)), "whole");

    net::testing::Authority authority;
    ServerSetup tls{.socket = true};
    tls.client.tls = {.ca_file = authority.file(), .server_name = "localhost"};
    tls.tls = net::TlsServer::load({.certificates = {authority.issue("site")}}).value();
    Server over_tls(ReverseProxy({.upstreams = {plain.url("")}}), tls);
    EXPECT_EQ(asked_by(over_tls.client(), over_tls.url()), "whole");

    Server in_memory(ReverseProxy({.upstreams = {plain.url("")}}));
    EXPECT_EQ(asked_by(in_memory.client(), in_memory.url()), "whole");

    FakeUpstreams fakes;
    fakes.add("http://fake.example", [](Request&, ResponseWriter& res) { res.text(long_body()); });
    TestServer to_memory(
        ReverseProxy({.upstreams = {"http://fake.example"}, .client = fakes.client_options()}));
    EXPECT_EQ(asked_by(client, url_of(to_memory)), "whole");
  });
}

}  // namespace
}  // namespace tuza::http::testing
