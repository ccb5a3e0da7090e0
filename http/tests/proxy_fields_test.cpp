// Fields of a client that the reverse proxy passes on under a condition.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>

#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxyFieldsTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyFieldsTest);

// What an upstream is asked for a client that sends these fields.
std::string asked_with(std::string_view fields, ReverseProxyOptions options = {}) {
  AskedFor asked_for;
  ScriptedServer upstream([&](net::Conn& conn, int) {
    asked_for.add(ScriptedServer::read_request(conn));
    (void)conn.write_all("HTTP/1.1 204 No Content\r\n\r\n");
  });
  options.upstreams = {upstream.url("")};
  TestServer proxy{ReverseProxy(std::move(options))};
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
  EXPECT_EQ(fetch(proxy.address(), request).status, 204);
  return asked_for.take().at(0);
}

TEST_P(ProxyFieldsTest, TrailersAreWelcomeIfTheClientSaysSo) {
  run_with(GetParam(), [] {
    constexpr std::string_view kWelcome = "\r\nConnection: TE\r\nTE: trailers\r\n";
    EXPECT_TRUE(asked_with("TE: gzip;q=0.5, trailers\r\nConnection: TE\r\n").contains(kWelcome));
    EXPECT_TRUE(asked_with("Connection: close, te\r\nte: Trailers\r\n").contains(kWelcome));
    EXPECT_FALSE(asked_with("TE: trailers\r\nConnection: keep-alive\r\n").contains("TE:"));
    EXPECT_FALSE(asked_with("TE: gzip\r\nConnection: TE\r\n").contains("TE:"));
  });
}

// CGI and WSGI write X_User and X-User the same.
TEST_P(ProxyFieldsTest, NamesWithAnUnderscoreOnRequestOnly) {
  run_with(GetParam(), [] {
    const auto rewrite = [](const Request&, ClientRequest& out) { out.set_header("X-User", "alice"); };
    for (const bool pass : {false, true}) {
      const std::string asked = asked_with("X_User: mallory\r\nX_Forwarded_For: 6.6.6.6\r\n",
                                           {.underscores_in_names = pass, .rewrite = rewrite});
      EXPECT_TRUE(asked.contains("X-User: alice"));
      EXPECT_EQ(asked.contains("X_User: mallory"), pass) << asked;
      EXPECT_FALSE(asked.contains("6.6.6.6"));
    }
  });
}

// What the upstream needs for links that lead back to it.
TEST_P(ProxyFieldsTest, AMountedProxyNamesItsPrefix) {
  run_with(GetParam(), [] {
    AskedFor asked_for;
    ScriptedServer upstream([&](net::Conn& conn, int) {
      while (true) {
        std::string asked = ScriptedServer::read_request(conn);
        if (asked.empty()) return;
        asked_for.add(std::move(asked));
        (void)conn.write_all("HTTP/1.1 204 No Content\r\n\r\n");
      }
    });
    Router router;
    router.handle("/", ReverseProxy({.upstreams = {upstream.url("")}}));
    router.mount("/team/files", ReverseProxy({.upstreams = {upstream.url("")}}));
    router.mount("/quiet",
                 ReverseProxy({.upstreams = {upstream.url("")}, .forwarded = ForwardedFields::kNone}));
    TestServer proxy(std::move(router));
    const auto asked = [&](const char* path) {
      EXPECT_EQ(fetch(proxy.address(), "GET " + std::string(path) +
                                           " HTTP/1.1\r\nHost: a\r\nX-Forwarded-Prefix: /evil\r\n\r\n")
                    .status,
                204);
      return asked_for.take().at(0);
    };
    const std::string mounted = asked("/team/files/x");
    EXPECT_TRUE(mounted.starts_with("GET /x ")) << mounted;
    EXPECT_TRUE(mounted.contains("\r\nX-Forwarded-Prefix: /team/files\r\n")) << mounted;
    EXPECT_FALSE(mounted.contains("evil"));
    EXPECT_TRUE(asked("/team/files/x?").starts_with("GET /x? "));
    EXPECT_TRUE(asked("/team/files/?a?b").starts_with("GET /?a?b "));
    EXPECT_FALSE(asked("/x").contains("Prefix"));
    EXPECT_FALSE(asked("/quiet/x").contains("Prefix"));
  });
}

// Fields are copied as they were received, also several at once: what is left out between them takes nothing with it.
TEST_P(ProxyFieldsTest, KeepTheirOrderAndTheirValuesWhateverTheWhiteSpace) {
  run_with(GetParam(), [] {
    constexpr std::string_view kReceived =
        "A: 1\r\nB:2\r\nC:  3 \r\nD: \r\nKeep-Alive: 5\r\nE:\r\nF:\t4, 5\t\r\nG: 6 \r\nExpect:\r\nUpgrade: "
        "x\r\n"
        "H: a: b\r\nI: 7\r\nTE: trailers\r\nJ: 8\r\nconnection: k, keep-alive\r\nk: 9\r\nL: \"\" "
        "\r\nProxy-Connection: x\r\n";
    constexpr std::string_view kPassed =
        "A: 1\r\nB: 2\r\nC: 3\r\nD: \r\nE: \r\nF: 4, 5\r\nG: 6\r\nH: a: b\r\nI: 7\r\nJ: 8\r\nL: \"\"\r\n";
    const std::string asked = asked_with(kReceived);
    EXPECT_TRUE(asked.contains("\r\n" + std::string(kPassed) + "Host: a\r\nVia: ")) << asked;
    ScriptedServer upstream("HTTP/1.1 200 OK\r\n" + std::string(kReceived) + "Content-Length: 2\r\n\r\nok");
    TestServer proxy{ReverseProxy({.upstreams = {upstream.url("")}})};
    RawClient client(proxy.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.read_until_closed();
    const std::string& answer = client.received();
    EXPECT_TRUE(answer.contains("\r\n" + std::string(kPassed))) << answer;
    for (const std::string_view gone : {"Keep-Alive", "Upgrade", "TE:", "k: 9", "Proxy-"})
      EXPECT_FALSE(answer.contains(gone)) << gone;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nok"));
  });
}

}  // namespace
}  // namespace tuza::http::testing
