// URLs that a client asks for: what they mean, what is refused, and where references lead.
#include <gtest/gtest.h>
#include <tuza/http/url.h>

#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

std::string parsed(std::string_view text) {
  const Result<Url> url = Url::parse(text);
  return url ? url->to_string() + " at " + url->address() : "refused";
}

TEST(Urls, MeanOneAddressAndOneTarget) {
  EXPECT_EQ(parsed("http://example.org"), "http://example.org/ at example.org:80");
  EXPECT_EQ(parsed("HTTPS://Example.ORG:443/A?B#c"), "https://example.org/A?B at example.org:443");
  EXPECT_EQ(parsed("http://example.org:443"), "http://example.org:443/ at example.org:443");
  EXPECT_EQ(parsed("http://example.org:080/"), "http://example.org/ at example.org:80");
  EXPECT_EQ(parsed("http://example.org:"), "http://example.org/ at example.org:80");
  EXPECT_EQ(parsed("http://example.org?a=b"), "http://example.org/?a=b at example.org:80");
  EXPECT_EQ(parsed("http://example.org#x"), "http://example.org/ at example.org:80");
  EXPECT_EQ(parsed("http://[::1]:8080/x"), "http://[::1]:8080/x at [::1]:8080");
  EXPECT_EQ(parsed("http://[::1]/x"), "http://[::1]/x at [::1]:80");
  EXPECT_EQ(parsed("http://[fe80::1%25eth0]/"), "http://[fe80::1%25eth0]/ at [fe80::1%eth0]:80");
  EXPECT_EQ(Url::parse("http://[::1]:80/")->host(), "::1");
  EXPECT_EQ(Url::parse("http://h:81/")->host(), "h");
}

TEST(Urls, EncodeWhatNoRequestMayHave) {
  EXPECT_EQ(Url::parse("http://h/a b\"<>?c d{}")->target, "/a%20b%22%3C%3E?c%20d{}");
  EXPECT_EQ(Url::parse("http://h/\xc3\xbc?\xc3\xbc")->target, "/%C3%BC?%C3%BC");
  EXPECT_EQ(Url::parse("http://h/%41%zz%")->target, "/%41%25zz%25");
  EXPECT_EQ(Url::parse("http://h/{a}\\b")->target, "/%7Ba%7D%5Cb");
  EXPECT_EQ(Url::parse("http://good\\@evil/")->authority, "good");
}

TEST(Urls, AreRefused) {
  for (const std::string_view text : {"",
                                      "/",
                                      "example.org",
                                      "example.org/x",
                                      "ftp://h/",
                                      "javascript:alert(1)",
                                      "http:",
                                      "http:/h/",
                                      "http://",
                                      "http:///x",
                                      "http://:80/",
                                      "http://user@h/",
                                      "http://user:secret@h/",
                                      "http://h:x/",
                                      "http://h:0/",
                                      "http://h:65536/",
                                      "http://h:99999999999/",
                                      "http://h:8 0/",
                                      "http://[::1/",
                                      "http://[zz]/",
                                      "http://a b/",
                                      "http://h/\r\nX: y",
                                      "http://h/\n",
                                      "http://h/\t",
                                      "http://h\x7f/",
                                      "http://a,b/",
                                      " http://h/"}) {
    EXPECT_EQ(parsed(text), "refused") << text;
  }
  EXPECT_EQ(Url::parse("http://h:99999/").error().subject(), "http://h:99999/: port out of range");
  for (const std::string& text :
       {std::string("http://user:secret@h:x/a@b"), std::string("http://user:secret@h/"),
        "http://user:secret" + std::string(300, 't') + "@h/"}) {
    const std::string said = Url::parse(text).error().message();
    EXPECT_FALSE(said.contains("secret") || said.contains("ttt") || said.contains("user")) << said;
    EXPECT_TRUE(said.contains("http://...@h")) << said;
  }
  EXPECT_FALSE(Url::parse("http://h/\x1b[31m").error().message().contains('\x1b'));
}

// RFC 3986 5.4, where http has a meaning of its own for none of it.
TEST(Urls, LeadReferencesWhereTheRfcSays) {
  const Url base = Url::parse("http://a/b/c/d;p?q").value();
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {{"g", "http://a/b/c/g"},
                                                                      {"./g", "http://a/b/c/g"},
                                                                      {"g/", "http://a/b/c/g/"},
                                                                      {"/g", "http://a/g"},
                                                                      {"//g", "http://g/"},
                                                                      {"?y", "http://a/b/c/d;p?y"},
                                                                      {"g?y", "http://a/b/c/g?y"},
                                                                      {"#s", "http://a/b/c/d;p?q"},
                                                                      {"g#s", "http://a/b/c/g"},
                                                                      {";x", "http://a/b/c/;x"},
                                                                      {"g;x", "http://a/b/c/g;x"},
                                                                      {"", "http://a/b/c/d;p?q"},
                                                                      {".", "http://a/b/c/"},
                                                                      {"./", "http://a/b/c/"},
                                                                      {"..", "http://a/b/"},
                                                                      {"../", "http://a/b/"},
                                                                      {"../g", "http://a/b/g"},
                                                                      {"../..", "http://a/"},
                                                                      {"../../g", "http://a/g"},
                                                                      {"../../../g", "http://a/g"},
                                                                      {"/./g", "http://a/g"},
                                                                      {"/../g", "http://a/g"},
                                                                      {"g.", "http://a/b/c/g."},
                                                                      {".g", "http://a/b/c/.g"},
                                                                      {"g..", "http://a/b/c/g.."},
                                                                      {"./../g", "http://a/b/g"},
                                                                      {"./g/.", "http://a/b/c/g/"},
                                                                      {"g/./h", "http://a/b/c/g/h"},
                                                                      {"g/../h", "http://a/b/c/h"},
                                                                      {"g;x=1/../y", "http://a/b/c/y"},
                                                                      {"g?y/../x", "http://a/b/c/g?y/../x"},
                                                                      {"https://x:444/y", "https://x:444/y"},
                                                                      {"g:h/i", "refused"},
                                                                      {"a b", "http://a/b/c/a%20b"},
                                                                      {"x\x01y", "refused"}};
  for (const auto& [reference, expected] : kCases) {
    const Result<Url> url = base.resolve(reference);
    EXPECT_EQ(url ? url->to_string() : "refused", expected) << reference;
  }
}

// Where a browser goes decides whether a link leads to another site: https://url.spec.whatwg.org.
TEST(Urls, LeadReferencesWhereBrowsersGo) {
  const Url base = Url::parse("http://h.test/d/e").value();
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"/\\evil.test/x", "http://evil.test/x"},
      {"\\\\evil.test/x", "http://evil.test/x"},
      {"\\/evil.test\\x", "http://evil.test/x"},
      {"http:\\\\evil.test\\x", "http://evil.test/x"},
      {"http://good.test\\@evil.test", "http://good.test/@evil.test"},
      {"\\x", "http://h.test/x"},
      {"..\\x", "http://h.test/x"},
      {"x?\\y", "http://h.test/d/x?\\y"},
      {"x#\\y", "http://h.test/d/x"},
      {"?\\", "http://h.test/d/e?\\"},
      {" \t//evil.test\r\n ", "http://evil.test/"},
      {"\x01\x1f//evil.test\x1f", "http://evil.test/"},
      {"/\t/evil.test", "http://evil.test/"},
      {"/\n\\evil.test", "http://evil.test/"},
      {"//evil\r.te\nst", "http://evil.test/"},
      {"ht\ttp://evil.test", "http://evil.test/"},
      {" x ", "http://h.test/d/x"},
      {" \n", "http://h.test/d/e"},
      {"/.//evil.test", "http://h.test//evil.test"},
      // Browsers repair the first ones, and go to evil.test: no server means that.
      {"///evil.test", "refused"},
      {"/\\/evil.test", "refused"},
      {"http:///evil.test", "refused"},
      {"https:evil.test", "refused"},
      {"https:/evil.test", "refused"},
      {"//u@evil.test", "refused"},
      {"//ev\xc3\xaf"
       "l.test",
       "refused"},
      {"java\nscript:alert(1)", "refused"},
      {"/\x7f/evil.test", "refused"}};
  for (const auto& [reference, expected] : kCases) {
    const Result<Url> url = base.resolve(reference);
    EXPECT_EQ(url ? url->to_string() : "refused", expected) << reference;
  }
  for (int byte = 0; byte <= ' '; ++byte) {
    const std::string around(1, static_cast<char>(byte));
    EXPECT_EQ(base.resolve(around + "x" + around)->to_string(), "http://h.test/d/x") << byte;
  }
}

TEST(Urls, TakeAnyTextAsOneSegmentOfAPath) {
  EXPECT_EQ(path_escape("item-7_a.b~Z"), "item-7_a.b~Z");
  EXPECT_EQ(path_escape("a b/../c?d=e&f#g%2f\\"), "a%20b%2F..%2Fc%3Fd%3De%26f%23g%252f%5C");
  EXPECT_EQ(path_escape("\xc3\xbc\r\n"), "%C3%BC%0D%0A");
  EXPECT_EQ(path_escape(std::string_view("\0", 1)), "%00");
  EXPECT_EQ(path_escape("a:b@c+d;e,f"), "a%3Ab%40c%2Bd%3Be%2Cf");
  EXPECT_EQ(path_escape(""), "");
  // As they are, they would take segments away.
  EXPECT_EQ(path_escape("."), "%2E");
  EXPECT_EQ(path_escape(".."), "%2E%2E");
  EXPECT_EQ(path_escape("..."), "...");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text :
       {all, std::string(".."), std::string("?x"), std::string("#x"), std::string("//h")}) {
    const Result<Url> url = Url::parse("http://h/a/" + path_escape(text) + "/b?c");
    EXPECT_EQ(url->target, "/a/" + path_escape(text) + "/b?c") << text;
  }
}

TEST(Urls, OfOneOriginShareIt) {
  const auto origin = [](std::string_view text) { return Url::parse(text)->origin(); };
  EXPECT_EQ(origin("http://h/a"), origin("http://H:80/b?c"));
  EXPECT_NE(origin("http://h/"), origin("https://h/"));
  EXPECT_NE(origin("http://h/"), origin("http://h:81/"));
  EXPECT_NE(origin("http://h/"), origin("http://www.h/"));
}

}  // namespace
}  // namespace tuza::http::testing
