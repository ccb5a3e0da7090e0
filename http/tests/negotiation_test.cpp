// Which representation suits the client: RFC 9110 12.5, RFC 4647.
#include <tuza/http/negotiate.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/testing.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using Texts = std::vector<std::string_view>;
struct Choice {
  Texts fields, offered;
  std::string_view chosen;  // empty: none
};

template <class Choose>
void expect_choices(Choose choose, const std::vector<Choice>& cases) {
  for (const Choice& c : cases) {
    const std::string_view field = c.fields.empty() ? "(no field)" : c.fields.front();
    EXPECT_EQ(choose(c.fields, c.offered).value_or(""), c.chosen) << field;
  }
}

TEST(Negotiation, ItemsOfAList) {
  std::string_view list =
      R"( , text/html;level=1 ; q=0.5;ext, a/b;x="1,2;q=0"; y=2;Q = 1.000, c;q=2,, d;q=0.3339 ,e;q=0.0001;)";
  const auto item = [&list] { return next_weighted_item(list).value(); };
  const WeightedItem first = item();
  EXPECT_EQ(first.value, "text/html");
  EXPECT_EQ(first.parameters, "level=1");
  EXPECT_EQ(first.weight, 500);
  const WeightedItem second = item();
  EXPECT_EQ(second.parameters, R"(x="1,2;q=0"; y=2)");
  EXPECT_EQ(second.weight, 1000);
  EXPECT_EQ(item().weight, -1);
  EXPECT_EQ(item().weight, 333);
  EXPECT_EQ(item().weight, 1);
  EXPECT_FALSE(next_weighted_item(list));
  for (const std::string_view bad :
       {"a;q=", "a;q=1.1", "a;q=.5", "a;q=-1", "a;q=0.5x", "a;q=1e0", "a;q=0,5"}) {
    std::string_view left = bad;
    EXPECT_EQ(next_weighted_item(left)->weight == -1, bad != "a;q=0,5") << bad;
  }
  std::string_view unclosed = "a;x=\"b, c\\";
  EXPECT_EQ(next_weighted_item(unclosed)->value, "a");
  EXPECT_TRUE(unclosed.empty());
}

TEST(Negotiation, MediaTypes) {
  const Texts both = {"application/json", "text/html"};
  expect_choices(
      choose_media_type,
      {
          {{}, both, "application/json"},
          {{""}, both, "application/json"},
          {{"text/html"}, both, "text/html"},
          {{"TEXT/HTML;q=0.1"}, both, "text/html"},
          {{"image/png"}, both, ""},
          {{"*/*"}, both, "application/json"},
          {{"*"}, both, "application/json"},
          {{"text/*, */*;q=0.1"}, both, "text/html"},
          {{"text/*;q=0.3, text/html;q=0"}, {"text/html", "text/plain"}, "text/plain"},
          {{"text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"}, both, "text/html"},
          {{"application/json;q=0.5", "text/html;q=0.6"}, both, "text/html"},
          {{"text/html;level=1, text/html;q=0.7"},
           {"text/html;level=2", "text/html; Level=\"1\""},
           "text/html; Level=\"1\""},
          {{"text/html;level=1"}, {"text/html"}, ""},
          {{"text/html;q=x, */*;q=0.1"}, {"text/plain"}, "text/plain"},
          {{"text"}, both, ""},
          {{"tex/*"}, both, ""},
          {{"*/*;q=0"}, both, ""},
          {{"text/html, text/plain, */*"}, both, "text/html"},
          {{"*/*"}, {}, ""},
      });
}

TEST(Negotiation, Languages) {
  const Texts offered = {"en", "de", "de-CH", "zh-Hant-TW"};
  expect_choices(choose_language, {
                                      {{}, offered, "en"},
                                      {{"de-CH, en;q=0.5"}, offered, "de-CH"},
                                      {{"de-AT, en;q=0.5"}, offered, "de"},
                                      {{"de;q=0.8, en;q=0.7"}, offered, "de"},
                                      {{"fr, *;q=0.1"}, offered, "en"},
                                      {{"fr"}, offered, ""},
                                      {{"de-CH, en"}, offered, "en"},
                                      {{"d"}, offered, ""},
                                      {{"zh"}, offered, "zh-Hant-TW"},
                                      {{"ZH-hant"}, offered, "zh-Hant-TW"},
                                      {{"de;q=0, *"}, {"de-CH", "en"}, "en"},
                                      {{"en-GB;q=0.2, en-US;q=0.9, de;q=0.5"}, offered, "en"},
                                  });
}

TEST(Negotiation, Encodings) {
  const Texts offered = {"br", "gzip"};
  expect_choices(choose_encoding, {
                                      {{}, offered, "identity"},
                                      {{""}, offered, "identity"},
                                      {{"gzip, deflate, br"}, offered, "br"},
                                      {{"gzip", "br;q=0.9"}, offered, "gzip"},
                                      {{"x-gzip"}, offered, "gzip"},
                                      {{"GZIP;q=0.001"}, offered, "gzip"},
                                      {{"*"}, offered, "br"},
                                      {{"*, br;q=0"}, offered, "gzip"},
                                      {{"*, gzip"}, offered, "gzip"},
                                      {{"gzip;q=0"}, offered, "identity"},
                                      {{"deflate"}, offered, "identity"},
                                      {{"identity, gzip;q=0.5"}, offered, "identity"},
                                      {{"identity;q=0.5, gzip;q=0.5"}, offered, "gzip"},
                                      {{"*;q=0.5, identity;q=0.8"}, offered, "identity"},
                                      {{"identity;q=0"}, offered, ""},
                                      {{"*;q=0"}, offered, ""},
                                      {{"*;q=0, identity;q=0.1"}, offered, "identity"},
                                      {{"*;q=0, gzip"}, offered, "gzip"},
                                      {{"gzip;q=high"}, offered, "identity"},
                                  });
}

TEST(Negotiation, OfARequest) {
  const auto handler = [](Request& req, ResponseWriter& res) {
    res.text(std::string(req.accepts({"application/json", "text/html"}).value_or("none")) + " " +
             std::string(req.accepts_language({"en", "de"}).value_or("none")) + " " +
             std::string(req.accepts_encoding({"gzip"}).value_or("none")));
  };
  EXPECT_EQ(call(handler, "GET /").body, "application/json en identity");
  EXPECT_EQ(call(handler, "GET /",
                 {.headers = {{"Accept", "a/b"},
                              {"accept", "text/html"},
                              {"Accept-Language", "de"},
                              {"Accept-Encoding", "gzip"}}})
                .body,
            "text/html de gzip");
  EXPECT_EQ(
      call(handler, "GET /",
           {.headers = {{"Accept", "a/b"}, {"Accept-Language", "fr"}, {"Accept-Encoding", "identity;q=0"}}})
          .body,
      "none none none");
}

}  // namespace
}  // namespace tuza::http::testing
