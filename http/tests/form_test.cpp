// Queries and forms: every name and value, in order, within limits.
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/status_error.h>
#include <tuza/http/testing.h>
#include <tuza/http/values.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

std::string shown(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values) text.append(name).append(":").append(value).append("|");
  return text;
}

TEST(ValuesTest, KeepOrderAndDuplicates) {
  const Values values = Values::parse("b=1&a=2&b=3&&c&=x&d=e=f&%61+%2B=%00%zz%4&a").value();
  EXPECT_EQ(shown(values), std::string("b:1|a:2|b:3|c:|:x|d:e=f|a +:\0%zz%4|a:|", 38));
  EXPECT_EQ(values.get("b"), "1");
  EXPECT_EQ(values.get("c"), "");
  EXPECT_EQ(values.get("B"), std::nullopt);
  EXPECT_EQ(values.get_all("b"), (std::vector<std::string_view>{"1", "3"}));
  EXPECT_TRUE(values.get_all("z").empty());
  EXPECT_TRUE(values.has("d"));
  EXPECT_EQ(values.get<int>("a"), 2);
  EXPECT_EQ(values.get<int>("z"), std::nullopt);
  EXPECT_THROW((void)values.get<int>("d"), StatusError);
  const Values moved = Values(values);
  EXPECT_EQ(shown(moved), shown(values));
  EXPECT_TRUE(Values::parse("").value().empty());
}

TEST(ValuesTest, AreEncodedAndDecoded) {
  Values values;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  values.add("q", "a b&c=d+e%\xc3\xa4*-._");
  values.add(bytes, bytes);
  values.add("", "");
  EXPECT_TRUE(values.encode().starts_with("q=a+b%26c%3Dd%2Be%25%C3%A4*-._&"));
  EXPECT_EQ(shown(Values::parse(values.encode()).value()), shown(values));
}

TEST(ValuesTest, TheirNumberIsLimited) {
  EXPECT_TRUE(Values::parse("a&b&&c", 3));
  EXPECT_FALSE(Values::parse("a&b&c&d", 3));
}

TEST(Query, AllOfIt) {
  const auto handler = [](Request& req, ResponseWriter& res) { res.text(shown(req.query_values(3))); };
  EXPECT_EQ(call(handler, "GET /?x=1&x=%20&y").body, "x:1|x: |y:|");
  EXPECT_EQ(call(handler, "GET /").body, "");
  EXPECT_EQ(call(handler, "GET /?a&b&c&d").status, 400);
}

TEST(Form, IsReadWithinItsLimits) {
  const auto handler = [](Request& req, ResponseWriter& res) { res.text(shown(req.form(10, 3))); };
  const auto post = [&handler](std::string type, std::string body, bool chunked = false,
                               std::size_t server_max = 100) {
    return call(handler, "POST /",
                {.headers = {{"Content-Type", std::move(type)}},
                 .body = std::move(body),
                 .chunked = chunked,
                 .server = {.body_bytes_max = server_max}});
  };
  const std::string form = "application/x-www-form-urlencoded";
  EXPECT_EQ(post(form, "a=1&b=+&a=").body, "a:1|b: |a:|");
  EXPECT_EQ(post("Application/X-WWW-Form-Urlencoded ; charset=utf-8", "a=1").body, "a:1|");
  EXPECT_EQ(post(form, "").status, 200);
  for (const bool chunked : {false, true}) {
    EXPECT_EQ(post(form, "a=34567890", chunked).status, 200);
    EXPECT_EQ(post(form, "a=345678901", chunked).status, 413);
    EXPECT_EQ(post(form, "a=34567890", chunked, 5).status, 413) << "the server's limit";
  }
  EXPECT_EQ(post(form, "a&b&c&d").status, 400);
  for (const char* type : {"", "text/plain", "multipart/form-data", "application/x-www-form-urlencodedx"}) {
    EXPECT_EQ(post(type, "a=1").status, 415) << type;
  }
  EXPECT_EQ(call(handler, "POST /", {.body = "a=1"}).status, 415);
}

}  // namespace
}  // namespace tuza::http::testing
