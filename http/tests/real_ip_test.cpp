// The client's address behind proxies: who is believed, and what.
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/real_ip.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

void say(Request& req, ResponseWriter& res) {
  const Forwarded* const forwarded = req.get(kForwarded);
  const auto endpoint = req.remote_endpoint();
  EXPECT_TRUE(endpoint && net::to_string(*endpoint) == req.remote());
  res.text(std::string(req.remote()) +
           (forwarded == nullptr ? " -" : " " + forwarded->proto + " " + forwarded->host));
}

std::string seen(const HeaderFields& headers, ForwardedHeader kind,
                 const std::string& peer = "10.0.0.1:5000") {
  const Handler handler = with(&say, real_ip({.trusted = {"10.0.0.0/8", "2001:db8::/32"}, .header = kind}));
  return call(handler, "GET /", {.headers = headers, .peer = net::parse_endpoint(peer).value()}).body;
}

TEST(RealIpTest, TheFirstAddressFromTheEndThatIsNoProxy) {
  constexpr auto kKind = ForwardedHeader::kXForwardedFor;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"203.0.113.7", "203.0.113.7:0"},
      {"203.0.113.7:4711", "203.0.113.7:4711"},
      {"6.6.6.6, 203.0.113.7", "203.0.113.7:0"},
      {"6.6.6.6, 203.0.113.7, 10.9.9.9,10.1.1.1", "203.0.113.7:0"},
      {"203.0.113.7, , 10.1.1.1,", "203.0.113.7:0"},
      {"2001:db9::1", "[2001:db9::1]:0"},
      {"[2001:db9::1]", "[2001:db9::1]:0"},
      {"[2001:db9::1]:80, 2001:db8::5", "[2001:db9::1]:80"},
      {"10.1.2.3", "10.1.2.3:0"},  // only proxies: the first of them
      {"203.0.113.7, unknown, 10.1.1.1", "10.1.1.1:0"},
      {"unknown", "10.0.0.1:5000"},
      {":80", "10.0.0.1:5000"},
      {"\", 203.0.113.7", "203.0.113.7:0"},  // a quote of the client's hides nothing
      {"6.6.6.6, \", 203.0.113.7, 10.1.1.1", "203.0.113.7:0"},
      {"fe80::1%1", "10.0.0.1:5000"},
      {"::ffff:203.0.113.7", "203.0.113.7:0"},
      {"[::ffff:203.0.113.7]:80", "203.0.113.7:80"},
      {"203.0.113.7 6.6.6.6", "10.0.0.1:5000"},
      {"", "10.0.0.1:5000"},
  };
  for (const auto& [value, expected] : cases) {
    EXPECT_EQ(seen({{"X-Forwarded-For", value}}, kKind), expected + "  ") << value;
  }
  EXPECT_EQ(seen({{"X-Forwarded-For", "203.0.113.7"}, {"X-Forwarded-For", "10.1.1.1"}}, kKind),
            "203.0.113.7:0  ");
  EXPECT_EQ(seen({}, kKind), "10.0.0.1:5000  ");
}

TEST(RealIpTest, WhoIsNotTrustedIsNotBelieved) {
  const HeaderFields lies{
      {"X-Forwarded-For", "10.0.0.1"}, {"X-Forwarded-Proto", "https"}, {"Forwarded", "for=10.0.0.1"}};
  EXPECT_EQ(seen(lies, ForwardedHeader::kXForwardedFor, "203.0.113.9:1"), "203.0.113.9:1 -");
  EXPECT_EQ(seen(lies, ForwardedHeader::kForwarded, "203.0.113.9:1"), "203.0.113.9:1 -");
  // The header that the proxies do not write is the client's.
  EXPECT_EQ(seen({{"Forwarded", "for=6.6.6.6"}}, ForwardedHeader::kXForwardedFor), "10.0.0.1:5000  ");
  EXPECT_EQ(
      seen({{"X-Forwarded-For", "6.6.6.6"}, {"X-Forwarded-Proto", "https"}}, ForwardedHeader::kForwarded),
      "10.0.0.1:5000  ");
}

TEST(RealIpTest, TheStandardHeader) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"for=203.0.113.7;proto=https;host=www.example.com", "203.0.113.7:0 https www.example.com"},
      {"For=\"[2001:db9::1]:4711\" ; PROTO=HTTP", "[2001:db9::1]:4711 http "},
      {"for=6.6.6.6;proto=http, for=203.0.113.7;proto=https, for=10.1.1.1;proto=http",
       "203.0.113.7:0 https "},
      {"for=\"a, b\", for=203.0.113.7", "203.0.113.7:0  "},
      {"for=_hidden;proto=https", "10.0.0.1:5000  "},
      {"for=203.0.113.7;proto=javascript;host=\"a b\"", "203.0.113.7:0  "},
      {"for=\"203.0.113.7", "10.0.0.1:5000  "},
      {"for", "10.0.0.1:5000  "},
      // What the client has written takes nothing in of what the proxy has.
      {"for=6.6.6.6;x=\", for=203.0.113.7", "203.0.113.7:0  "},
      {"for=6.6.6.6;x=\", for=\"203.0.113.7:80\";host=\"a\\\", b\"", "203.0.113.7:80  "},
  };
  for (const auto& [value, expected] : cases) {
    EXPECT_EQ(seen({{"Forwarded", value}}, ForwardedHeader::kForwarded), expected) << value;
  }
}

TEST(RealIpTest, WhatTheProxySaysOfTheRequest) {
  EXPECT_EQ(seen({{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Host", "a.example:8080"}},
                 ForwardedHeader::kXForwardedFor),
            "10.0.0.1:5000 https a.example:8080");
  // Of two it is unclear which one is the client's.
  EXPECT_EQ(
      seen({{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", "http"}}, ForwardedHeader::kXForwardedFor),
      "10.0.0.1:5000  ");
  EXPECT_EQ(seen({{"X-Forwarded-Proto", "https, http"}, {"X-Forwarded-Host", "a<b>"}},
                 ForwardedHeader::kXForwardedFor),
            "10.0.0.1:5000  ");
}

TEST(RealIpTest, LogsAroundItKnowTheClientAndTheNextRequestIsAnew) {
  tuza::testing::run_with(1, [] {
    std::vector<std::string> lines;
    Handler handler = with(&say,
                           access_log({.format = AccessLogFormat::kCommon,
                                       .write = [&](std::string_view line) { lines.emplace_back(line); }}),
                           real_ip({.trusted = {"127.0.0.0/8"}}));
    TestServer server(std::move(handler));
    RawClient client(server.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n" + get("/"));
    const std::vector<Response> responses = client.read_responses(2);
    EXPECT_EQ(responses.at(0).body, "203.0.113.7:0  ");
    EXPECT_TRUE(responses.at(1).body.starts_with("127.0.0.1:")) << responses.at(1).body;
    EXPECT_TRUE(lines.at(0).starts_with("203.0.113.7 - - [")) << lines.at(0);
    EXPECT_TRUE(lines.at(1).starts_with("127.0.0.1 - - [")) << lines.at(1);
  });
}

TEST(RealIpTest, WrongOptions) {
  EXPECT_THROW((void)real_ip({}), std::invalid_argument);
  EXPECT_THROW((void)real_ip({.trusted = {"10.0.0.1/8"}}), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
