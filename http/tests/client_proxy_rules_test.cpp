// Which proxy a URL goes through: proxies as text, exceptions, the environment.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/client/proxy.h>
#include <tuza/http/wire/base64.h>
#include <tuza/sched/log.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

TEST(ProxyTest, IsATextWithAHost) {
  using Kind = Proxy::Kind;
  const auto expect = [](std::string_view text, Kind kind, std::string_view address,
                         std::string_view user = "", std::string_view password = "") {
    const Result<Proxy> proxy = Proxy::parse(text);
    ASSERT_TRUE(proxy) << text << ": " << proxy.error().message();
    EXPECT_EQ(proxy->kind, kind) << text;
    EXPECT_EQ(proxy->address, address) << text;
    EXPECT_EQ(proxy->credentials.has_value(), text.contains('@')) << text;
    EXPECT_EQ(proxy->credentials ? proxy->credentials->user : "", user) << text;
    EXPECT_EQ(proxy->credentials ? proxy->credentials->password : "", password) << text;
  };
  expect("http://proxy:3128", Kind::kHttp, "proxy:3128");
  expect("HTTP://Proxy.Example/", Kind::kHttp, "proxy.example:80");
  expect("proxy:3128", Kind::kHttp, "proxy:3128");
  expect("10.0.0.1", Kind::kHttp, "10.0.0.1:80");
  expect("user:pw@proxy:3128", Kind::kHttp, "proxy:3128", "user", "pw");
  expect("http://u%40x:p%3aw%25%2F@[::1]:8080", Kind::kHttp, "[::1]:8080", "u@x", "p:w%/");
  expect("http://u:p@w@proxy", Kind::kHttp, "proxy:80", "u", "p@w");
  expect("socks5://proxy", Kind::kSocks5, "proxy:1080");
  expect("socks5://[::1]", Kind::kSocks5, "[::1]:1080");
  expect("socks5h://user@proxy:80/", Kind::kSocks5h, "proxy:80", "user", "");
  EXPECT_EQ(Proxy::parse("http://Aladdin:open%20sesame@proxy")->authorization,
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");  // RFC 7617 2
  for (const auto& [bytes, text] : std::array<std::pair<std::string_view, std::string_view>, 4>{
           {{"", ""}, {"f", "Zg=="}, {"\xfb\xff", "+/8="}, {"foo", "Zm9v"}}}) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(ProxyTest, MalformedOnesAreErrorsThatKeepPasswordsSecret) {
  const std::string long_text(256, 'x');
  for (const std::string& text :
       {std::string("https://u:secret@proxy"), std::string("socks4://u:secret@proxy"), std::string("http://"),
        std::string("http://:3128"), std::string("http://u:secret@"), std::string("http://u:secret@h:99999"),
        std::string("http://u:secret@h:0"), std::string("http://u:secret@h:1x"),
        std::string("http://u:secret@h/path"), std::string("http://u:secret@h?q"), std::string("http://h h"),
        std::string("http://u:se/cret@h"), std::string("http://u:secret#@h"), std::string("http://:secret@h"),
        std::string("http://u%3a:secret@h"), std::string("http://h\r\nX: y"), std::string("http://[::1"),
        "socks5://" + long_text + ":secret@h", "socks5h://u:secret" + long_text + "@h"}) {
    const Result<Proxy> proxy = Proxy::parse(text);
    ASSERT_FALSE(proxy) << text;
    EXPECT_TRUE(proxy.error().is(Errc::kBadAddress)) << text;
    EXPECT_TRUE(proxy.error().message().contains("parse proxy")) << proxy.error().message();
    EXPECT_FALSE(proxy.error().message().contains("secret")) << proxy.error().message();
    EXPECT_FALSE(proxy.error().message().contains("cret")) << proxy.error().message();
    EXPECT_FALSE(proxy.error().message().contains('\n')) << text;
    EXPECT_THROW(Client({.proxy = {.http = text}}), std::invalid_argument) << text;
    EXPECT_THROW(Client({.proxy = {.https = text}}), std::invalid_argument) << text;
  }
  EXPECT_THROW(Client({.address = "h:80", .proxy = {.http = "h"}}), std::invalid_argument);
  EXPECT_THROW(Client({.dial = [](const Context&, const Url& url) { return net::dial("tcp", url.address()); },
                       .proxy = {.https = "h"}}),
               std::invalid_argument);
}

bool is_direct(std::string_view except, std::string_view url, bool loopback = false) {
  const Result<ProxyRules> rules =
      ProxyRules::parse({.http = "p", .https = "p", .except = std::string(except), .loopback = loopback});
  EXPECT_TRUE(rules) << except << ": " << rules.error().message();
  return rules->choose(Url::parse(url).value()) == nullptr;
}

TEST(ProxyRulesTest, ExceptionsAreNamesAddressesNetworksAndPorts) {
  const std::string list =
      " example.org,.below.org , *.star.org, Port.org:8080,10.0.0.0/8, 192.0.2.1,,"
      "192.0.2.2:81, fd00::/8, 2001:db8::1, [2001:db8::2]:82, [2001:db8::3], dot.org.";
  for (const char* url :
       {"http://example.org", "https://EXAMPLE.org:444/x", "http://a.b.example.org", "http://example.org.",
        "http://a.below.org", "http://a.star.org", "http://port.org:8080", "http://a.port.org:8080",
        "http://10.255.0.1", "http://192.0.2.1:99", "http://192.0.2.2:81", "http://[fd12::1]",
        "http://[2001:db8::1]:5", "http://[2001:db8::2]:82", "http://[2001:db8::3]", "http://dot.org",
        "http://[::ffff:10.0.0.1]"})
    EXPECT_TRUE(is_direct(list, url)) << url;
  for (const char* url :
       {"http://example.com", "http://notexample.org", "http://example.org.evil.com", "http://below.org",
        "http://star.org", "http://port.org", "https://port.org", "http://11.0.0.1", "http://192.0.2.3",
        "http://192.0.2.2", "http://192.0.2.2:82", "http://[fe00::1]", "http://[2001:db8::2]",
        "http://[2001:db8::4]", "http://10.0.0.1.example.com", "http://org"})
    EXPECT_FALSE(is_direct(list, url)) << url;
  // Bits behind the prefix do not count, as with curl and Go.
  EXPECT_TRUE(is_direct("10.1.2.3/8, fd00::1/8", "http://10.255.0.1"));
  EXPECT_TRUE(is_direct("10.1.2.3/8, fd00::1/8", "http://[fd12::2]"));
  EXPECT_FALSE(is_direct("10.1.2.3/9", "http://10.200.0.1"));
  EXPECT_TRUE(is_direct("a, *", "https://whatever.example"));
  EXPECT_FALSE(is_direct("", "https://whatever.example"));
  EXPECT_TRUE(is_direct("secure.org:443", "https://secure.org"));
  EXPECT_FALSE(is_direct("secure.org:443", "http://secure.org"));
  for (const char* bad : {"10.0.0.0/33", "a/b", "a:", "a:b", "http://a", "*a", "a*b", "a b", ".", "\"a"})
    EXPECT_FALSE(ProxyRules::parse({.except = bad})) << bad;
}

TEST(ProxyRulesTest, LoopbackIsDirectUnlessAskedFor) {
  for (const char* url :
       {"http://localhost", "http://LOCALHOST:8080", "http://a.localhost", "http://127.0.0.1",
        "https://127.9.9.9:9", "http://[::1]:80", "http://[::ffff:127.0.0.1]"}) {
    EXPECT_TRUE(is_direct("", url)) << url;
    EXPECT_FALSE(is_direct("", url, true)) << url;
  }
  for (const char* url : {"http://localhost.example", "http://128.0.0.1", "http://[::2]"})
    EXPECT_FALSE(is_direct("", url)) << url;
}

TEST(ProxyRulesTest, EachSchemeHasItsProxy) {
  const Result<ProxyRules> rules = ProxyRules::parse({.https = "secure:1"});
  EXPECT_EQ(rules->choose(Url::parse("http://a").value()), nullptr);
  EXPECT_EQ(rules->choose(Url::parse("https://a").value())->address, "secure:1");
  EXPECT_FALSE(rules->empty());
  EXPECT_TRUE(ProxyRules::parse({.except = "a"})->empty());
}

// Sets variables for the length of a scope, where none of these are set otherwise.
class ProxyVariables {
 public:
  explicit ProxyVariables(std::initializer_list<std::pair<const char*, const char*>> set) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (const char* value = std::getenv(kNames[i])) before_[i] = value;
      (void)unsetenv(kNames[i]);
    }
    for (const auto& [name, value] : set) (void)setenv(name, value, 1);
  }
  ProxyVariables(const ProxyVariables&) = delete;
  ProxyVariables& operator=(const ProxyVariables&) = delete;
  ~ProxyVariables() {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      (void)unsetenv(kNames[i]);
      if (before_[i]) (void)setenv(kNames[i], before_[i]->c_str(), 1);
    }
  }

 private:
  static constexpr std::array<const char*, 7> kNames{
      "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "REQUEST_METHOD"};
  std::array<std::optional<std::string>, kNames.size()> before_;
};

TEST(ProxiesFromEnvironmentTest, AreThoseOfTheUsualVariables) {
  {
    const ProxyVariables none({});
    const Result<ProxyOptions> options = proxies_from_environment();
    EXPECT_TRUE(options && options->http.empty() && options->https.empty() && options->except.empty());
  }
  {
    const ProxyVariables all({{"HTTP_PROXY", "a:1"}, {"HTTPS_PROXY", "socks5://b"}, {"NO_PROXY", "c, d"}});
    const Result<ProxyOptions> options = proxies_from_environment();
    ASSERT_TRUE(options) << options.error().message();
    EXPECT_EQ(options->http, "a:1");
    EXPECT_EQ(options->https, "socks5://b");
    EXPECT_EQ(options->except, "c,d");
    EXPECT_FALSE(options->loopback);
  }
  const ProxyVariables both(
      {{"http_proxy", "small"}, {"HTTP_PROXY", "large"}, {"https_proxy", ""}, {"HTTPS_PROXY", "large"}});
  EXPECT_EQ(proxies_from_environment()->http, "small");
  EXPECT_EQ(proxies_from_environment()->https, "large") << "an empty variable counts as none";
}

// In a CGI program, HTTP_PROXY is what the client has sent as "Proxy: ...".
TEST(ProxiesFromEnvironmentTest, AFieldOfARequestIsNoProxy) {
  const ProxyVariables cgi(
      {{"REQUEST_METHOD", "GET"}, {"HTTP_PROXY", "http://evil.example"}, {"HTTPS_PROXY", "good"}});
  EXPECT_EQ(proxies_from_environment()->http, "");
  EXPECT_EQ(proxies_from_environment()->https, "good");
  const ProxyVariables small({{"REQUEST_METHOD", ""}, {"HTTP_PROXY", "evil"}, {"http_proxy", "good"}});
  EXPECT_EQ(proxies_from_environment()->http, "good");
}

TEST(ProxiesFromEnvironmentTest, MalformedOnesAreErrorsThatNameTheVariable) {
  struct Malformed {
    const char *name, *value, *message;
  };
  for (const auto& [name, value, message] :
       {Malformed{"HTTP_PROXY", "ftp://u:secret@x", "ftp://x: none of http://, socks5:// and socks5h://"},
        Malformed{"https_proxy", "https://x", "https://x: none of http://, socks5:// and socks5h://"},
        Malformed{"HTTPS_PROXY", "socks5://u:secret@x:99999", "socks5://x:99999: malformed host or port"},
        Malformed{"http_proxy", "http://u:secret@h/path", "http://h/path: a path"},
        Malformed{"http_proxy", "u:secret@h://x", "x: none of http://, socks5:// and socks5h://"}}) {
    const ProxyVariables set({{name, value}});
    const Result<ProxyOptions> options = proxies_from_environment();
    ASSERT_FALSE(options) << name;
    EXPECT_TRUE(options.error().is(Errc::kBadAddress));
    EXPECT_EQ(options.error().message(),
              std::string(name) + ": parse proxy " + message + ": invalid address");
  }
}

// Go and curl go on without them, and administrators set one NO_PROXY for all programs.
TEST(ProxiesFromEnvironmentTest, AnExceptionThatNobodyKnowsLeavesTheOthers) {
  static std::string lines;
  lines.clear();
  set_log_sink([](LogLevel, std::string_view line) { lines.append(line).append("\n"); });
  const ProxyVariables set(
      {{"http_proxy", "p"}, {"NO_PROXY", "a b, good.org,,10.0.0.0/33 , x:y,\"q, 10.0.0.0/8,"}});
  const Result<ProxyOptions> options = proxies_from_environment();
  set_log_sink(nullptr);
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->except, "good.org,10.0.0.0/8");
  EXPECT_NO_THROW(Client({.proxy = *options}));
  EXPECT_EQ(lines,
            "tuza: NO_PROXY: left out: parse proxy exception a b: no host: invalid address\n"
            "tuza: NO_PROXY: left out: parse proxy exception 10.0.0.0/33: malformed network: invalid "
            "address\n"
            "tuza: NO_PROXY: left out: parse proxy exception x:y: malformed port: invalid address\n"
            "tuza: NO_PROXY: left out: parse proxy exception \"q: no host: invalid address\n");
}

}  // namespace
}  // namespace tuza::http::testing
