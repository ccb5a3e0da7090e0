// What errors of the client say: which phase has failed, and nothing that is nobody's business.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientErrorsTest : public WithProcs {};
TUZA_WITH_PROCS(ClientErrorsTest);

Result<net::Conn> dial_for_ever(const Context& ctx, const Url&) {
  (void)sleep_for(ctx, 1h);
  return std::unexpected(ctx.cause());
}

TEST_P(ClientErrorsTest, ATimeoutOfTheClientNamesItsPhase) {
  run_with(GetParam(), [] {
    ScriptedServer silent([](net::Conn& conn, int) {
      std::array<char, 1024> scrap;
      while (conn.read(std::span(scrap)).value_or(0) > 0) {
      }
    });
    const std::string host = silent.url("").substr(std::string_view("http://").size());
    const auto message = [](ClientOptions options, const std::string& url) {
      Client client(std::move(options));
      const Error error = client.get(kNoContext, url).error();
      EXPECT_TRUE(error.timeout()) << error.message();
      return error.message();
    };
    EXPECT_EQ(message({.dial = dial_for_ever, .dial_timeout = 20ms}, "http://a:81/x"),
              "GET http://a:81/x: dial a:81: deadline exceeded");
    EXPECT_EQ(message({.dial = dial_for_ever, .timeout = 20ms}, "http://a/x"),
              "GET http://a/x: dial a:80: deadline exceeded");
    EXPECT_EQ(message({.dial_timeout = 20ms}, "https://" + host + "/"),
              "GET https://" + host + "/: tls handshake " + host + ": deadline exceeded");
    EXPECT_EQ(message({.head_timeout = 20ms}, silent.url()),
              "GET " + silent.url() + ": read response: no answer in time");
  });
}

TEST_P(ClientErrorsTest, AFailedHandshakeIsNamed) {
  run_with(GetParam(), [] {
    ScriptedServer resetting([](net::Conn& conn, int) {
      std::array<char, 1> first;
      (void)conn.read(std::span(first));
      (void)conn.set_linger_zero();
    });
    TestServer plain([](Request&, ResponseWriter& res) { res.text("no TLS"); });
    const auto message = [](const std::string& http_url) {
      Client client;
      return client.get(kNoContext, "https" + http_url.substr(4)).error().message();
    };
    EXPECT_TRUE(message(resetting.url()).ends_with("/: tls handshake 127.0.0.1: Connection reset by peer"))
        << message(resetting.url());
    EXPECT_TRUE(message(url_of(plain)).ends_with("wrong version number: the peer may not speak TLS"))
        << message(url_of(plain));
  });
}

TEST_P(ClientErrorsTest, TheCallersContextIsNotTheClientsLimit) {
  run_with(GetParam(), [] {
    Client client({.dial = dial_for_ever});
    const auto [ctx, cancel] = with_timeout(kNoContext, 20ms);
    EXPECT_EQ(client.get(ctx, "http://a/").error().message(), "GET http://a/: context: deadline exceeded");
    const auto mine = with_cancel(kNoContext);
    mine.cancel(Error(Errc::kClosed, "my own reason"));
    EXPECT_EQ(client.get(mine.ctx(), "http://a/").error().op(), "");
    EXPECT_TRUE(client.get(mine.ctx(), "http://a/").error().message().contains("my own reason"));
  });
}

std::string& logged() {
  static std::string lines;
  return lines;
}

// A query may hold a token, and a log is read by many.
TEST(ClientErrorsLog, AProxyShowsNoQuery) {
  logged().clear();
  set_log_sink([](LogLevel, std::string_view line) { logged().append(line).append("\n"); });
  tuza::run([] {
    ScriptedServer upstream("garbage\r\n\r\n");
    TestServer proxy{ReverseProxy({.upstreams = {upstream.url("")}})};
    EXPECT_EQ(fetch(proxy.address(), get("/path?token=secret:%20")).status, 502);
  });
  set_log_sink(nullptr);
  EXPECT_TRUE(logged().contains("/path?***: read response: ")) << logged();
  EXPECT_FALSE(logged().contains("secret")) << logged();
}

}  // namespace
}  // namespace tuza::http::testing
