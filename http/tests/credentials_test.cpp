// The Authorization field: RFC 7617, RFC 6750.
#include <tuza/http/credentials.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/testing.h>
#include <tuza/http/wire/base64.h>

#include <gtest/gtest.h>

#include <string>

namespace tuza::http::testing {
namespace {

TEST(Credentials, Basic) {
  const auto pair = [](std::string_view field) {
    const auto found = parse_basic_auth(field);
    return found ? found->user + "/" + found->password : "none";
  };
  EXPECT_EQ(pair("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "Aladdin/open sesame");
  EXPECT_EQ(pair("bAsIc   dGVzdDoxMjPCow=="), "test/123\xc2\xa3");
  EXPECT_EQ(pair("Basic YTpiOmM="), "a/b:c");
  EXPECT_EQ(pair("Basic Og=="), "/");
  for (const char* bad :
       {"", "Basic", "Basic ", "Basic\tOg==", "BasicOg==", "Basic Og",
        "Basic Og=", "Basic Oh==", "Basic Og===", "Basic O g==", "Basic Og==x",
        "Basic YQ==", "Basic YTphCg==", "Basic YTp/", "Bearer Og==", "Basic Og==, Basic Og=="}) {
    EXPECT_EQ(pair(bad), "none") << bad;
  }
}

TEST(Credentials, Bearer) {
  EXPECT_EQ(parse_bearer_token("Bearer abc.-_~+/9=="), "abc.-_~+/9==");
  EXPECT_EQ(parse_bearer_token("bearer  x"), "x");
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearer a b", "Bearer =", "Bearer a=b", "Bearer a,b",
                          "Basic abc", "Bearer \xc3\xa4"}) {
    EXPECT_EQ(parse_bearer_token(bad), std::nullopt) << bad;
  }
}

TEST(Credentials, OfARequestThatHasOneFieldOfThem) {
  const auto handler = [](Request& req, ResponseWriter& res) {
    const auto basic = req.basic_auth();
    res.text((basic ? basic->user : "none") + "|" + std::string(req.bearer_token().value_or("none")));
  };
  EXPECT_EQ(call(handler, "GET /").body, "none|none");
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"Authorization", "Basic YTpi"}}}).body, "a|none");
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"authorization", "Bearer t"}}}).body, "none|t");
  EXPECT_EQ(
      call(handler, "GET /", {.headers = {{"Authorization", "Bearer t"}, {"Authorization", "Bearer t"}}})
          .body,
      "none|none");
}

TEST(Credentials, SecretsAreCompared) {
  EXPECT_TRUE(constant_time_equal("", ""));
  EXPECT_TRUE(constant_time_equal("abc", std::string("abc")));
  EXPECT_FALSE(constant_time_equal("abc", "abd"));
  EXPECT_FALSE(constant_time_equal("abc", "abcd"));
}

TEST(Base64, OneEncodingForEachText) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64url(encode_base64url(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(encode_base64url("\xfb\xff"), "-_8");
  for (const char* bad : {"-_9", "A", "AAAAA", "+/8", "-_8=", "AA\n"})
    EXPECT_EQ(decode_base64url(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace tuza::http::testing
