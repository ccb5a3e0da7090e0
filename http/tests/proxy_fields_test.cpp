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

}  // namespace
}  // namespace tuza::http::testing
