// Cookies as browsers read them (RFC 6265bis), and cookies that clients cannot forge.
#include <tuza/http/cookie.h>
#include <tuza/http/cookie_signer.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/testing.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

using namespace std::chrono_literals;

TEST(Cookies, ThoseOfARequest) {
  const auto handler = [](Request& req, ResponseWriter& res) {
    std::string all;
    for (const auto& [name, value] : req.cookies()) all.append(name).append("=").append(value).append("|");
    res.text(all + std::string(req.cookie("b").value_or("none")));
  };
  EXPECT_EQ(call(handler, "GET /").body, "none");
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"Cookie", ""}}}).body, "none");
  EXPECT_EQ(call(handler, "GET /",
                 {.headers = {{"Cookie", "a=1; b=\"x y\";c=d=e ;; nothing; =v; B=2;"},
                              {"X", "b=9"},
                              {"cookie", "b=3"}}})
                .body,
            "a=1|b=\"x y\"|c=d=e|B=2|b=3|\"x y\"");
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"Cookie", ";;"}, {"Cookie", "b="}}}).body, "b=|");
}

TEST(Cookies, AttributesAreWritten) {
  EXPECT_EQ(to_set_cookie({.name = "a", .value = "1"}), "a=1; Path=/; HttpOnly; SameSite=Lax");
  EXPECT_EQ(to_set_cookie({.name = "__Host-a",
                           .max_age = 24h,
                           .expires = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + 20h + 15min,
                           .secure = true,
                           .http_only = false,
                           .same_site = SameSite::kNone,
                           .partitioned = true}),
            "__Host-a=; Path=/; Expires=Fri, 20 Nov 2026 20:15:00 GMT; Max-Age=86400; Secure; SameSite=None; "
            "Partitioned");
  EXPECT_EQ(to_set_cookie({.name = "a",
                           .value = "1",
                           .path = "/x y",
                           .domain = "example.com",
                           .max_age = -5s,
                           .same_site = SameSite::kStrict}),
            "a=1; Path=/x y; Domain=example.com; Max-Age=0; HttpOnly; SameSite=Strict");
  EXPECT_EQ(to_set_cookie({.name = "a", .path = "", .http_only = false, .same_site = SameSite::kUnset}),
            "a=");
}

TEST(Cookies, WhatBrowsersWouldRefuseIsRefused) {
  const auto refused = [](const Cookie& cookie) {
    EXPECT_THROW((void)to_set_cookie(cookie), std::invalid_argument);
  };
  for (const char* name : {"", "a b", "a;b", "a=b", "a\r\n", "\xc3\xa4"}) refused({.name = name});
  for (const char* value : {"a b", "a;b", "a,b", "\"a\"", "a\\b", "a\nb", "\xc3\xa4"})
    refused({.name = "a", .value = value});
  EXPECT_NO_THROW((void)to_set_cookie({.name = "a", .value = std::string(4095, 'x')}));
  refused({.name = "a", .value = std::string(4096, 'x')});
  for (const char* path : {"x", "/a;b", "/a\n"}) refused({.name = "a", .path = path});
  for (const char* domain : {"a b", "a;b", "[::1]", "a\n"}) refused({.name = "a", .domain = domain});
  refused({.name = "a", .path = "/" + std::string(1024, 'x')});
  refused({.name = "a", .expires = std::chrono::sys_days(std::chrono::year(1600) / 12 / 31)});
  refused({.name = "a", .expires = std::chrono::sys_days(std::chrono::year(10000) / 1 / 1)});
  refused({.name = "a", .same_site = SameSite::kNone});
  refused({.name = "a", .partitioned = true});
  refused({.name = "__Secure-a"});
  refused({.name = "__secure-a"});
  refused({.name = "__Host-a"});
  refused({.name = "__Host-a", .path = "/x", .secure = true});
  refused({.name = "__HOST-a", .domain = "example.com", .secure = true});
}

TEST(Cookies, OfAResponse) {
  const auto handler = [](Request&, ResponseWriter& res) {
    res.set_cookie({.name = "a", .value = "1"});
    res.set_cookie({.name = "b", .value = "2"});
    res.delete_cookie("c");
    res.delete_cookie({.name = "__Host-d", .value = "x"});
  };
  std::vector<std::string> set;
  for (const auto& [name, value] : call(handler, "GET /").headers) {
    if (name == "Set-Cookie") set.push_back(value);
  }
  ASSERT_EQ(set.size(), 4u);
  EXPECT_TRUE(set[0].starts_with("a=1;") && set[1].starts_with("b=2;"));
  EXPECT_EQ(set[2], "c=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; HttpOnly; SameSite=Lax");
  EXPECT_EQ(
      set[3],
      "__Host-d=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
}

const std::string kOld(32, 'o'), kNew(32, 'n');
constexpr std::chrono::sys_seconds kNow(1'800'000'000s);

TEST(SignedCookies, NothingOfThemCanBeChanged) {
  const CookieSigner signer({kNew});
  const std::string value("a b\0;\xff\n", 7);
  const std::string text = signer.sign("user", value, kNow);
  EXPECT_EQ(signer.verify("user", text, kNow - 1s), value);
  EXPECT_EQ(signer.verify("user", text, kNow), std::nullopt) << "has ended";
  EXPECT_EQ(signer.verify("use", text, kNow - 1s), std::nullopt) << "is of another cookie";
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'A', 'B', '.', '0', '9', '='}) {
      std::string changed = text;
      if (std::exchange(changed[i], c) == c) continue;
      EXPECT_EQ(signer.verify("user", changed, kNow - 1s), std::nullopt) << i << c;
    }
    EXPECT_EQ(signer.verify("user", text.substr(0, i), kNow - 1s), std::nullopt);
    EXPECT_EQ(signer.verify("user", text.substr(i + 1), kNow - 1s), std::nullopt);
  }
  EXPECT_EQ(signer.verify("user", text + "A", kNow - 1s), std::nullopt);
  // The name is not glued to the value.
  const std::string glued = signer.sign("ab", "", kNow);
  EXPECT_EQ(signer.verify("a", "b" + glued, kNow - 1s), std::nullopt);
  // The signature of another implementation: HMAC-SHA256 of "tuza cookie 4 user" and what is signed.
  EXPECT_EQ(signer.sign("user", "17", kNow), "MTc.1800000000.bX3Fyr7Ud0Q2_CEua_2_yuc0ixo8w_45gJ9aC2pd75I");
}

TEST(SignedCookies, MayBeForEver) {
  const CookieSigner signer({kNew});
  for (const std::chrono::seconds age : {std::chrono::seconds::max(), std::chrono::seconds::min()}) {
    const CallResult set =
        call([&](Request&,
                 ResponseWriter& res) { signer.set(res, {.name = "user", .value = "ada", .max_age = age}); },
             "GET /");
    const std::string cookie(set.header("Set-Cookie").value());
    const auto got = [&](Request& req, ResponseWriter& res) {
      res.text(signer.get(req, "user").value_or("nobody"));
    };
    EXPECT_EQ(call(got, "GET /", {.headers = {{"Cookie", cookie.substr(0, cookie.find(';'))}}}).body,
              age > 0s ? "ada" : "nobody");
  }
}

TEST(SignedCookies, KeysRotate) {
  const CookieSigner before({kOld}), during({kNew, kOld}), after({kNew});
  const std::string old_text = before.sign("a", "1", kNow), new_text = during.sign("a", "1", kNow);
  EXPECT_EQ(during.verify("a", old_text, kNow - 1s), "1");
  EXPECT_EQ(during.verify("a", new_text, kNow - 1s), "1");
  EXPECT_EQ(after.verify("a", new_text, kNow - 1s), "1");
  EXPECT_EQ(after.verify("a", old_text, kNow - 1s), std::nullopt);
  EXPECT_THROW(CookieSigner({}), std::invalid_argument);
  EXPECT_THROW(CookieSigner({kNew, std::string(31, 'x')}), std::invalid_argument);
}

TEST(SignedCookies, ARequestBringsBackWhatAResponseHasSet) {
  const CookieSigner signer({kNew});
  const auto login = [&signer](Request&, ResponseWriter& res) {
    signer.set(res, {.name = "user", .value = "ada lovelace", .max_age = 1h});
    EXPECT_THROW(signer.set(res, {.name = "user", .value = "ada"}), std::invalid_argument);
  };
  const auto set = std::string(call(login, "GET /").header("Set-Cookie").value());
  const auto who = [&signer](Request& req, ResponseWriter& res) {
    res.text(signer.get(req, "user").value_or("nobody"));
  };
  const std::string pair = set.substr(0, set.find(';'));
  EXPECT_EQ(call(who, "GET /", {.headers = {{"Cookie", pair}}}).body, "ada lovelace");
  EXPECT_EQ(call(who, "GET /", {.headers = {{"Cookie", "user=YWRh.9999999999.x; " + pair}}}).body,
            "ada lovelace")
      << "one that somebody else has put in front";
  EXPECT_EQ(call(who, "GET /", {.headers = {{"Cookie", "x" + pair}}}).body, "nobody");
}

}  // namespace
}  // namespace tuza::http::testing
