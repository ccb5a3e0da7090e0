// Long uploads that the reverse proxy passes on without looking at them: by splice(2) where it can.
#include <gtest/gtest.h>
#include <tuza/http/middleware/body_limit.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/tests/long_body.h>
#include <tuza/netpoll/poll/splice_pipe.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using net::SplicePipe;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxyUploadTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyUploadTest);

std::string head_of(std::size_t length, std::string_view fields = "") {
  return "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) + "\r\n" +
         std::string(fields) + "\r\n";
}

// Says whether the body is the one above.
Handler checking() {
  return [](Request& req, ResponseWriter& res) {
    const Result<std::string_view> body = req.body();
    if (!body) return;
    res.text(*body == long_body()
                 ? "whole"
                 : std::to_string(body->size()) + " bytes, begins " + std::string(body->substr(0, 100)));
  };
}

ServerOptions large_bodies() { return {.body_bytes_max = std::size_t{1} << 30}; }

TEST_P(ProxyUploadTest, LongBodiesArriveAsTheyWereSentAndTheConnectionsStay) {
  run_with(GetParam(), [] {
    TestServer upstream(checking(), large_bodies());
    const ReverseProxy proxying({.upstreams = {url_of(upstream, "")}});
    TestServer proxy(proxying, large_bodies());
    RawClient client(proxy.address());
    // In pieces that end anywhere: a body and the next head begin in the middle of one.
    const std::string request = head_of(long_body().size()) + long_body();
    constexpr std::size_t kRequests = 4;
    WaitGroup sending;
    sending.go([&] {
      for (std::size_t i = 0; i < kRequests; ++i) {
        for (std::size_t at = 0, n = 1; at < request.size(); at += n, n = n * 5 % 300'007 + 1) {
          client.send(std::string_view(request).substr(at, n));
        }
      }
    });
    for (const Response& answer : client.read_responses(kRequests)) EXPECT_EQ(answer.body, "whole");
    sending.wait();
    EXPECT_EQ(proxying.stats().front().failures, 0u);
  });
}

// An upstream that reads more slowly than its client sends leaves what is on its way in a pipe. It must not stop altogether:
// what came in small portions at first has been copied, and would wait for room before anything is spliced.
TEST_P(ProxyUploadTest, TheBytesDoNotEnterTheProcess) {
  run_with(GetParam(), [] {
    std::atomic<bool> may_read = false;
    ScriptedServer upstream([&may_read](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).empty()) return;
      std::vector<char> scrap(256 << 10);
      const auto room = [&] { return std::span(scrap).first(may_read ? scrap.size() : 16 << 10); };
      while (conn.read(room()).value_or(0) > 0) {
        if (!may_read) sleep_for(1ms);
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}), large_bodies());
    std::list<RawClient> clients;
    WaitGroup sending;
    while (clients.size() <= SplicePipe::kKeptMax) {
      RawClient& client = clients.emplace_back(proxy.address());
      sending.go([&client] {
        client.send(head_of(std::size_t{512} << 20));
        while (client.conn().write_all(long_body())) {
        }
      });
    }
    while (SplicePipe::open_pipes() < clients.size()) sleep_for(1ms);
    for (RawClient& client : clients)
      client.conn().close();  // in the middle: a pipe with bytes in it is nobody else's
    may_read = true;
    sending.wait();
    while (SplicePipe::open_pipes() > SplicePipe::kKeptMax) sleep_for(1ms);
  });
}

TEST_P(ProxyUploadTest, AnUploadThatBreaksOffDoesSoForTheUpstream) {
  run_with(GetParam(), [] {
    std::atomic<std::size_t> got = 0;
    std::atomic<bool> ended = false;
    ScriptedServer upstream([&](net::Conn& conn, int) {
      got = ScriptedServer::read_request(conn).size();
      std::vector<char> scrap(256 << 10);
      for (std::size_t n = 1; n > 0; got += n) n = conn.read(std::span(scrap)).value_or(0);
      ended = true;
    });
    const ReverseProxy proxying({.upstreams = {upstream.url("")}});
    TestServer proxy(proxying, large_bodies());
    RawClient client(proxy.address());
    client.send(head_of(long_body().size() + 1) + long_body());
    while (got < long_body().size()) sleep_for(1ms);
    EXPECT_FALSE(ended);
    client.conn().close();
    while (!ended) sleep_for(1ms);
    EXPECT_EQ(proxying.stats().front().failures, 0u) << "it is the client's fault";
  });
}

// The limits of time for an upload hold for what is spliced, too: who stops in the middle gets 408, and the time that the
// beginning of a long upload has taken is not held against its end.
TEST_P(ProxyUploadTest, WhoStopsInTheMiddleRunsIntoTheLimit) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      std::vector<char> scrap(256 << 10);
      while (conn.read(std::span(scrap)).value_or(0) > 0) {
      }
    });
    ServerOptions options = large_bodies();
    options.body_timeout = 50ms;
    options.body_rate_min_bytes_per_second = 100 << 20;
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}), options);
    RawClient client(proxy.address());
    client.send(head_of(long_body().size() + 1) + long_body());
    const std::vector<Response> answers = client.read_responses(1);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers.front().status, 408);
  });
}

TEST_P(ProxyUploadTest, AnUpstreamThatAnswersEarlyIsHeard) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).empty()) return;
      (void)conn.write_all("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
      std::vector<char> scrap(64 << 10);
      while (conn.read(std::span(scrap)).value_or(0) > 0) {
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}), large_bodies());
    RawClient client(proxy.address());
    client.send(head_of(std::size_t{64} << 20));
    WaitGroup sending;
    sending.go([&client] {
      while (client.conn().write_all(long_body())) {
      }
    });
    const std::vector<Response> answers = client.read_responses(1);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers.front().status, 403);
    client.conn().close();
    sending.wait();
  });
}

// What wants to see the body does so, and what is no socket cannot be spliced.
TEST_P(ProxyUploadTest, LimitsTlsAndMemoryGetTheBodyToo) {
  run_with(GetParam(), [] {
    const auto upload = [](Client& client, const std::string& url) -> std::string {
      Result<ClientResponse> got = client.post(Context::background(), url, "text/plain", long_body());
      return got ? got->body().value_or("no body") : got.error().message();
    };
    TestServer upstream(checking(), large_bodies());
    const auto proxying = [&] { return ReverseProxy({.upstreams = {url_of(upstream, "")}}); };
    Client client;
    TestServer limited(with(proxying(), body_limit(std::size_t{1} << 30)), large_bodies());
    EXPECT_EQ(upload(client, url_of(limited)), "whole");
    TestServer refusing(with(proxying(), body_limit(long_body().size() - 1)), large_bodies());
    Result<ClientResponse> refused =
        client.post(Context::background(), url_of(refusing), "text/plain", long_body());
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status(), 413);

    net::testing::Authority authority;
    ServerSetup tls{.server = large_bodies(), .socket = true};
    tls.client.tls = {.ca_file = authority.file(), .server_name = "localhost"};
    tls.tls = net::TlsServer::load({.certificates = {authority.issue("site")}}).value();
    Server over_tls(proxying(), tls);
    EXPECT_EQ(upload(over_tls.client(), over_tls.url()), "whole");

    Server in_memory(proxying(), {.server = large_bodies()});
    EXPECT_EQ(upload(in_memory.client(), in_memory.url()), "whole");
  });
}

}  // namespace
}  // namespace tuza::http::testing
