// Cookies that a client keeps: RFC 6265bis 5.6 to 5.8, and over connections.
#include <gtest/gtest.h>
#include <tuza/http/client/public_suffix.h>
#include <tuza/http/client/set_cookie.h>
#include <tuza/http/cookie_jar.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/time/fake_clock.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

Url at(std::string_view text) { return Url::parse(text).value(); }

struct CookieCase {
  const char *set_by, *set_cookie, *asked, *sent;
};
const std::vector<CookieCase> kCookieCases{
    {"http://a.org/", "n=v", "http://a.org/x/y?q", "n=v"},
    {"http://a.org/", "n=v", "https://A.ORG/", "n=v"},
    {"http://a.org:8080/", "n=v", "http://a.org/", "n=v"},  // a port does not matter
    {"http://a.org/", "n=v", "http://www.a.org/", ""},
    {"http://a.org/", "n=v", "http://b.org/", ""},
    {"http://a.org/", "  n =  v w \t; ", "http://a.org/", "n=v w"},
    {"http://a.org/", "n=\"v\"", "http://a.org/", "n=\"v\""},
    {"http://a.org/", "n==v=", "http://a.org/", "n==v="},
    {"http://a.org/", "n=", "http://a.org/", "n="},
    {"http://a.org/", "n", "http://a.org/", ""},
    {"http://a.org/", "=v", "http://a.org/", ""},
    {"http://a.org/", "n=v\x01", "http://a.org/", ""},
    {"http://a.org/", "n=v; HttpOnly; SameSite=Strict; Unknown=1", "http://a.org/", "n=v"},
    // Domain
    {"http://www.a.org/", "n=v; Domain=a.org", "http://a.org/", "n=v"},
    {"http://www.a.org/", "n=v; domain=.A.org", "http://x.y.a.org/", "n=v"},
    {"http://www.a.org/", "n=v; Domain=a.org", "http://aa.org/", ""},
    {"http://www.a.org/", "n=v; Domain=b.org", "http://b.org/", ""},
    {"http://www.a.org/", "n=v; Domain=x.www.a.org", "http://x.www.a.org/", ""},
    {"http://www.a.org/", "n=v; Domain=org", "http://b.org/", ""},
    {"http://www.a.org/", "n=v; Domain=org", "http://www.a.org/", ""},
    {"http://www.a.co.uk/", "n=v; Domain=co.uk", "http://b.co.uk/", ""},
    {"http://me.github.io/", "n=v; Domain=github.io", "http://you.github.io/", ""},
    {"http://github.io/", "n=v; Domain=github.io", "http://github.io/",
     "n=v"},  // a suffix itself: its host only
    {"http://github.io/", "n=v; Domain=github.io", "http://me.github.io/", ""},
    {"http://localhost/", "n=v; Domain=localhost", "http://localhost/", "n=v"},
    // A host with a final dot is another host than the one without; its suffix is the same.
    {"http://www.a.org./", "n=v; Domain=a.org.", "http://a.org./", "n=v"},
    {"http://www.a.org./", "n=v; Domain=a.org.", "http://a.org/", ""},
    {"http://www.a.org./", "n=v; Domain=a.org", "http://www.a.org./", ""},
    {"http://www.a.org/", "n=v; Domain=a.org.", "http://a.org/", ""},
    {"http://evil.co.uk./", "n=v; Domain=co.uk.", "http://bank.co.uk./", ""},
    {"http://evil.co.uk../", "n=v; Domain=co.uk..", "http://bank.co.uk../", ""},
    {"http://evil.com./", "n=v; Domain=com.", "http://bank.com./", ""},
    {"http://evil.com../", "n=v; Domain=..", "http://bank.com../", ""},
    {"http://co.uk./", "n=v; Domain=co.uk.", "http://co.uk./", "n=v"},
    {"http://co.uk./", "n=v; Domain=co.uk.", "http://bank.co.uk./", ""},
    {"http://app.internal/", "n=v; Domain=internal", "http://db.internal/", ""},
    {"http://www.a.org/", "n=v; Domain=", "http://a.org/", ""},
    {"http://10.0.0.1/", "n=v; Domain=10.0.0.1", "http://10.0.0.1/", "n=v"},
    {"http://10.0.0.1/", "n=v; Domain=0.0.1", "http://10.0.0.1/", ""},
    {"http://[::1]/", "n=v", "http://[::1]:81/", "n=v"},
    // Path
    {"http://a.org/x/y", "n=v", "http://a.org/x", "n=v"},
    {"http://a.org/x/y", "n=v", "http://a.org/x/z", "n=v"},
    {"http://a.org/x/y", "n=v", "http://a.org/xx", ""},
    {"http://a.org/x/y", "n=v; Path=/", "http://a.org/", "n=v"},
    {"http://a.org/x/y", "n=v; Path=y", "http://a.org/x/z", "n=v"},
    {"http://a.org/", "n=v; Path=/x/", "http://a.org/x/y", "n=v"},
    {"http://a.org/", "n=v; Path=/x/", "http://a.org/x", ""},
    {"http://a.org/", "n=v; Path=/x; Path=/y", "http://a.org/y", "n=v"},
    // Secure and the promises of names
    {"https://a.org/", "n=v; Secure", "https://a.org/", "n=v"},
    {"https://a.org/", "n=v; Secure", "http://a.org/", ""},
    {"http://a.org/", "n=v; Secure", "https://a.org/", ""},
    {"https://a.org/", "__Secure-n=v; Secure", "https://a.org/", "__Secure-n=v"},
    {"https://a.org/", "__secure-n=v", "https://a.org/", ""},
    {"https://a.org/x/y", "__Host-n=v; Secure; Path=/", "https://a.org/", "__Host-n=v"},
    {"https://a.org/x/y", "__Host-n=v; Secure", "https://a.org/x/y", ""},
    {"https://a.org/", "__Host-n=v; Secure; Path=/; Domain=a.org", "https://a.org/", ""},
    // Its end
    {"http://a.org/", "n=v; Max-Age=10", "http://a.org/", "n=v"},
    {"http://a.org/", "n=v; Max-Age=0", "http://a.org/", ""},
    {"http://a.org/", "n=v; Max-Age=-1", "http://a.org/", ""},
    {"http://a.org/", "n=v; Max-Age=1x", "http://a.org/", "n=v"},
    {"http://a.org/", "n=v; Max-Age=99999999999999999999", "http://a.org/", "n=v"},
    {"http://a.org/", "n=v; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "http://a.org/", ""},
    {"http://a.org/", "n=v; Expires=Sun, 06 Nov 9994 08:49:37 GMT", "http://a.org/", "n=v"},
    {"http://a.org/", "n=v; Expires=soon", "http://a.org/", "n=v"},
    {"http://a.org/", "n=v; Max-Age=9; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "http://a.org/", "n=v"},
    {"http://a.org/", "n=v; Expires=Sun, 06 Nov 9994 08:49:37 GMT; Max-Age=0", "http://a.org/", ""},
};

TEST(CookieJar, SendsACookieWhereItBelongs) {
  ASSERT_TRUE(knows_public_suffixes()) << "libpsl-dev is missing";
  for (const CookieCase& one : kCookieCases) {
    CookieJar jar;
    jar.store(at(one.set_by), one.set_cookie);
    EXPECT_EQ(jar.cookies_for(at(one.asked)), one.sent)
        << one.set_cookie << " of " << one.set_by << " for " << one.asked;
  }
}

TEST(CookieJar, ReadsAllKindsOfDates) {
  const auto seconds = [](std::string_view text) -> std::optional<std::int64_t> {
    const auto date = parse_cookie_date(text);
    return date ? std::optional<std::int64_t>(date->time_since_epoch().count()) : std::nullopt;
  };
  for (const char* text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 6-Nov-1994 8:49:37 GMT", "1994 NOVEMBER 6 08:49:37", "08:49:37 6 Nov 94",
        "06/nov/1994/08:49:37", "Sun, 06 Nov 1994 08:49:37GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT 07 Dec 1995 01:02:03"})
    EXPECT_EQ(seconds(text), 784'111'777) << text;
  EXPECT_EQ(seconds("01 Jan 70 00:00:00"), 0);
  EXPECT_EQ(seconds("01 Jan 69 00:00:00"), 3'124'224'000);  // 2069
  for (const char* text :
       {"", "soon", "06 Nov 1994", "08:49:37 Nov 1994", "06 1994 08:49:37", "06 Nov 08:49:37",
        "32 Nov 1994 08:49:37", "31 Feb 1994 08:49:37", "06 Nov 1600 08:49:37", "06 Nov 1994 24:00:00",
        "06 Nov 1994 08:60:00", "06 Nov 1994 08:49:60", "06 Nov 1994 008:49:37", "06 Nov 19940 08:49:37"})
    EXPECT_EQ(seconds(text), std::nullopt) << text;
}

TEST(CookieJar, ReplacesOrdersAndEnds) {
  run_with(1, [] {
    tuza::testing::FakeClock clock;
    CookieJar jar;
    const Url url = at("https://www.a.org/x/y");
    jar.store(url, "a=1; Path=/");
    jar.store(url, "b=1; Path=/x; Max-Age=60");
    jar.store(url, "c=1; Path=/");
    jar.store(url, "a=2; Path=/");
    EXPECT_EQ(jar.cookies_for(url), "b=1; a=2; c=1") << "the longest path first, then the oldest";
    jar.store(url, "a=3; Path=/; Domain=a.org");
    EXPECT_EQ(jar.cookies_for(url), "b=1; a=2; c=1; a=3") << "another domain is another cookie";
    jar.store(url, "a=; Path=/; Max-Age=0");
    EXPECT_EQ(jar.cookies_for(url), "b=1; c=1; a=3");
    clock.advance(59s);
    EXPECT_EQ(jar.entries().size(), 3u);
    clock.advance(1s);
    EXPECT_EQ(jar.cookies_for(url), "c=1; a=3");
    EXPECT_EQ(jar.entries().size(), 2u);

    jar.store(url, "d=1; Path=/; Max-Age=90");
    CookieJar other;
    for (CookieJar::Entry& entry : jar.entries()) other.store(entry);
    EXPECT_EQ(other.cookies_for(url), jar.cookies_for(url));
    other.store({.name = "x", .value = "1\r\nEvil: 1", .domain = "www.a.org", .path = "/"});
    other.store({.name = "y", .value = "1", .domain = "www.a.org", .path = "no"});
    EXPECT_EQ(other.cookies_for(url), jar.cookies_for(url));
    clock.advance(91s);
    EXPECT_EQ(other.cookies_for(url), "c=1; a=3");
    jar.clear();
    EXPECT_EQ(jar.cookies_for(url), "");
    EXPECT_TRUE(jar.entries().empty());
  });
}

// Who stands between could otherwise choose the session of a victim.
TEST(CookieJar, WhatCameWithoutTlsDoesNotReplaceWhatCameWithIt) {
  CookieJar jar;
  jar.store(at("https://a.org/x/"), "n=safe; Secure; Path=/x");
  jar.store(at("http://a.org/"), "n=evil; Path=/x/y");
  jar.store(at("http://www.a.org/"), "n=evil; Path=/x; Domain=a.org");
  EXPECT_EQ(jar.cookies_for(at("https://a.org/x/y")), "n=safe");
  jar.store(at("http://a.org/"), "n=other; Path=/");
  jar.store(at("http://b.org/"), "n=theirs; Path=/x");
  EXPECT_EQ(jar.cookies_for(at("https://a.org/x/y")), "n=safe; n=other");
}

TEST(CookieJar, KeepsWhatIsUsed) {
  CookieJar jar({.cookies_max = 5, .per_domain_max = 3});
  const auto sent = [&](const std::string& host) { return jar.cookies_for(at("http://" + host + "/")); };
  for (const char* name : {"a", "b", "c"}) jar.store(at("http://" + std::string(name) + ".org/"), "n=1");
  for (const char* name : {"a", "b", "c"})
    jar.store(at("http://a.org/" + std::string(name) + "/"), std::string(name) + "=1");
  EXPECT_EQ(jar.entries().size(), 5u);
  EXPECT_EQ(sent("a.org"), "") << "the fourth of its domain";
  EXPECT_EQ(sent("b.org"), "n=1");
  jar.store(at("http://d.org/"), "n=1");
  EXPECT_EQ(sent("c.org"), "") << "the one that was not sent";
  EXPECT_EQ(sent("b.org"), "n=1");
  for (int i = 0; i < 1000; ++i) jar.store(at("http://h" + std::to_string(i) + ".org/"), "n=1");
  EXPECT_EQ(jar.entries().size(), 5u);
  jar.store(at("http://e.org/"), "n=" + std::string(4095, 'x'));
  EXPECT_EQ(sent("e.org").size(), 4097u);
  jar.store(at("http://f.org/"), "n=" + std::string(4096, 'x'));
  EXPECT_EQ(sent("f.org"), "") << "more than 4,096 bytes";
}

// 150 cookies of 4 KB would be a field of 600 KB, which no server takes: its domain could not be asked any more.
TEST(CookieJar, SendsAFieldThatServersTake) {
  CookieJar jar;
  const Url url = at("http://a.org/x/y");
  const auto cookie = [](std::string_view name, std::size_t bytes, std::string_view path) {
    return std::string(name) + "=" + std::string(bytes - name.size(), 'v') + "; Path=" + std::string(path);
  };
  jar.store(url, cookie("a", 4'096, "/"));
  jar.store(url, cookie("b", 4'089, "/x"));
  EXPECT_EQ(jar.cookies_for(url).size(), CookieJar::kFieldBytesMax - 1);  // two "=" and a "; "
  jar.store(url, cookie("b", 4'090, "/x"));
  EXPECT_EQ(jar.cookies_for(url).size(), CookieJar::kFieldBytesMax);
  jar.store(url, cookie("b", 4'091, "/x"));
  jar.store(url, "c=1; Path=/");
  const std::string field = jar.cookies_for(url);
  EXPECT_TRUE(field.starts_with("b=") && field.size() == 4'092)
      << "the longest path goes first, then the oldest";
  for (int i = 0; i < 150; ++i) jar.store(url, cookie("n" + std::to_string(i), 4'000, "/"));
  EXPECT_EQ(jar.entries().size(), 150u);
  EXPECT_LE(jar.cookies_for(url).size(), CookieJar::kFieldBytesMax);
}

TEST(CookieJar, TakesNothingThatIsTooLong) {
  const auto sent = [](std::string_view set_cookie) {
    CookieJar jar;
    jar.store(at("http://a.org/"), set_cookie);
    return jar.cookies_for(at("http://a.org/"));
  };
  const std::string longest(CookieJar::kCookieBytesMax - 1, 'v');
  EXPECT_EQ(sent("n=" + longest), "n=" + longest);
  EXPECT_EQ(sent("n=" + longest + "v"), "");
  const std::string path(CookieJar::kAttributeBytesMax, '/');
  EXPECT_EQ(sent("n=v; Path=" + path), "");
  EXPECT_EQ(sent("n=v; Path=" + path + "/"), "n=v") << "an attribute that is too long is none";
  CookieJar jar;
  const CookieJar::Entry entry{.name = "n", .value = longest, .domain = "a.org", .path = "/"};
  for (auto member : {&CookieJar::Entry::value, &CookieJar::Entry::path, &CookieJar::Entry::domain}) {
    CookieJar::Entry other = entry;
    (other.*member).append(CookieJar::kAttributeBytesMax, 'x');
    jar.store(std::move(other));
    EXPECT_TRUE(jar.entries().empty());
  }
  jar.store(entry);
  EXPECT_EQ(jar.entries().size(), 1u);
}

class ClientCookiesTest : public WithProcs {};
TUZA_WITH_PROCS(ClientCookiesTest);

TEST_P(ClientCookiesTest, AreStoredAndSentRedirectsIncluded) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("/login", [](Request&, ResponseWriter& res) {
      res.add_header("Set-Cookie", "session=7; Path=/");
      res.add_header("Set-Cookie", "theme=dark; Path=/page");
      res.redirect("/page");
    });
    router.handle("/page",
                  [](Request& req, ResponseWriter& res) { res.text(req.header("Cookie").value_or("-")); });
    TestServer server(std::move(router));
    const auto jar = std::make_shared<CookieJar>();
    Client client({.middleware = {client_cookies(jar)}});
    const auto page = [&](ClientRequest request) { return client.send(kNoContext, request)->body().value(); };
    EXPECT_EQ(page({Method::kGet, url_of(server, "/page")}), "-");
    EXPECT_EQ(page({Method::kGet, url_of(server, "/login")}), "theme=dark; session=7");
    ClientRequest own(Method::kGet, url_of(server, "/page"));
    own.set_header("Cookie", "own=1");
    EXPECT_EQ(page(std::move(own)), "own=1; theme=dark; session=7");
    EXPECT_EQ(page({Method::kGet, "http://localhost:" +
                                      server.address().substr(server.address().rfind(':') + 1) + "/page"}),
              "-")
        << "another host";
    EXPECT_EQ(jar->entries().size(), 2u);
    EXPECT_THROW((void)client_cookies(nullptr), std::invalid_argument);
  });
}

}  // namespace
}  // namespace tuza::http::testing
