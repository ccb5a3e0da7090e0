// JSON through the user's library: errors that clients understand, and no way to use up a stack.
#include <tuza/http/json_codec.h>
#include <tuza/http/nlohmann_json.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/testing.h>
#include <tuza/sched/run.h>

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace json_types {

struct Point {
  int x = 0, y = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Point, x, y)

struct Celsius {
  int degrees = 0;
};

// A conversion that checks what it gets, and one that fails for a reason of its own.
struct Port {
  int number = 0;
};
inline void from_json(const nlohmann::json& json, Port& port) {
  port.number = json.get<int>();
  if (port.number < 0) throw std::runtime_error("no table of ports");
  if (port.number > 65535) throw std::invalid_argument("a port is at most 65535");
}

}  // namespace json_types
}  // namespace tuza::http::testing

// A codec of one's own.
template <>
struct tuza::http::JsonCodec<tuza::http::testing::json_types::Celsius> {
  using Celsius = tuza::http::testing::json_types::Celsius;
  static void encode(const Celsius& value, std::string& out) { out += std::to_string(value.degrees); }
  static Celsius decode(std::string_view json) {
    Celsius value;
    const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), value.degrees);
    if (error != std::errc{}) throw JsonError(static_cast<std::size_t>(end - json.data()) + 1);
    if (value.degrees < -273) throw JsonError(std::string("colder than possible"));
    return value;
  }
};

namespace tuza::http::testing {
namespace {

using json_types::Celsius;
using json_types::Point;

const auto mirrored = [](Request& req, ResponseWriter& res) {
  const Point point = req.json<Point>({.bytes_max = 300'000});
  res.json(201, Point{point.y, point.x});
};

CallResult post_json(std::string body, std::string type = "application/json") {
  return call(mirrored, "POST /", {.headers = {{"Content-Type", std::move(type)}}, .body = std::move(body)});
}

TEST(Json, TypesOfTheUser) {
  const CallResult res = post_json(R"({"x": 1, "y": 2, "x": 3, "more": null})");
  EXPECT_EQ(res.status, 201);
  EXPECT_EQ(res.header("Content-Type"), "application/json");
  EXPECT_EQ(res.body, R"({"x":2,"y":3})") << "of two members with a name, the last counts";
  for (const char* type :
       {"APPLICATION/JSON", "application/json; charset=utf-8", "application/problem+json"}) {
    EXPECT_EQ(post_json(R"({"x":1,"y":2})", type).status, 201);
  }
  const auto own = [](Request& req, ResponseWriter& res2) { res2.json(req.json<Celsius>()); };
  const CallOptions warm{.headers = {{"Content-Type", "application/json"}}, .body = "21"};
  EXPECT_EQ(call(own, "POST /", warm).body, "21");
  const CallOptions cold{.headers = {{"Content-Type", "application/json"}}, .body = "-300"};
  EXPECT_EQ(call(own, "POST /", cold).body, "colder than possible\n");
}

TEST(Json, ConversionsThatCheckWhatTheyGet) {
  const auto handler = [](Request& req, ResponseWriter& res) {
    res.text(std::to_string(req.json<json_types::Port>().number));
  };
  const auto post = [&handler](std::string body) {
    return call(handler, "POST /",
                {.headers = {{"Content-Type", "application/json"}}, .body = std::move(body)});
  };
  EXPECT_EQ(post("80").body, "80");
  EXPECT_EQ(post("65536").status, 400);
  EXPECT_EQ(post("65536").body, "a port is at most 65535\n");
  EXPECT_EQ(post("-1").status, 500) << "not the client's fault";
}

// As for a signature over the bytes.
TEST(Json, TheBodyMayHaveBeenReadAsAWhole) {
  const auto handler = [](Request& req, ResponseWriter& res) {
    const auto bytes = req.body();
    if (!bytes) return;
    res.text(std::to_string(bytes->size()) + " " + req.json<nlohmann::json>({.bytes_max = 9}).dump());
  };
  const auto post = [&handler](std::string body) {
    return call(
        handler, "POST /",
        {.headers = {{"Content-Type", "application/json"}}, .body = std::move(body), .chunked = true});
  };
  EXPECT_EQ(post("[1, 2, 3]").body, "9 [1,2,3]");
  EXPECT_EQ(post("[1, 2, 34]").status, 413);
  EXPECT_EQ(post("").status, 400);
}

TEST(Json, ValuesOfTheLibraryAndTexts) {
  EXPECT_EQ(
      call([](Request&, ResponseWriter& res) { res.json(nlohmann::json{{"a", {1, 2}}}); }, "GET /").body,
      R"({"a":[1,2]})");
  EXPECT_EQ(call([](Request&, ResponseWriter& res) { res.json(nlohmann::ordered_json{{"b", 1}, {"a", 2}}); },
                 "GET /")
                .body,
            R"({"b":1,"a":2})");
  EXPECT_EQ(call([](Request&,
                    ResponseWriter& res) { res.json(std::map<std::string, std::vector<int>>{{"a", {1}}}); },
                 "GET /")
                .body,
            R"({"a":[1]})");
  EXPECT_EQ(call([](Request&, ResponseWriter& res) { res.json(nlohmann::json("\xff")); }, "GET /").body,
            "\"\xef\xbf\xbd\"");
  const std::string text = R"({"is": "JSON already"})";
  EXPECT_EQ(call([&](Request&, ResponseWriter& res) { res.json(text); }, "GET /").body, text);
  EXPECT_EQ(call([&](Request&, ResponseWriter& res) { res.json(200, std::string_view(text)); }, "GET /").body,
            text);
  EXPECT_EQ(call([&](Request&, ResponseWriter& res) { res.json("[1]"); }, "GET /").body, "[1]");
}

struct Numbers {
  std::int8_t tiny = 0;
  unsigned natural = 0;
  std::uint64_t large = 0;
  float real = 0;
  std::vector<int> list;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Numbers, tiny, natural, large, real, list)

TEST(Json, ANumberThatDoesNotFitIsRefused) {
  const auto status = [](const std::string& body) {
    return call([](Request& req, ResponseWriter& res) { res.json(req.json<Numbers>()); }, "POST /",
                {.headers = {{"Content-Type", "application/json"}}, .body = body});
  };
  for (const char* good :
       {R"({"tiny":-128,"natural":4294967295,"large":18446744073709551615,"real":0.1})",
        R"({"tiny":127.0,"real":1e30,"list":[2147483647,-2147483648]})", R"({"real":1,"list":[]})"}) {
    EXPECT_EQ(status(good).status, 200) << good << status(good).body;
  }
  const std::pair<const char*, const char*> refused[] = {
      {R"({"tiny":128})", "tiny"},
      {R"({"tiny":256})", "tiny"},
      {R"({"tiny":1.9})", "tiny"},
      {R"({"tiny":1e30})", "tiny"},
      {R"({"tiny":true})", "tiny"},
      {R"({"natural":-1})", "natural"},
      {R"({"natural":4294967296})", "natural"},
      {R"({"natural":4294967297})", "natural"},
      {R"({"natural":5e9})", "natural"},
      {R"({"large":-1})", "large"},
      {R"({"large":18446744073709551616})", "large"},
      {R"({"real":false})", "real"},
      {R"({"list":[1,2.5]})", "list[1]"},
      {R"({"list":[5000000001.0]})", "list[0]"},
      {R"({"list":[9223372036854775807]})", "list[0]"},
  };
  for (const auto& [bad, place] : refused)
    EXPECT_EQ(status(bad).body, place + std::string(": does not fit its type\n")) << bad;
}

TEST(Json, WhatIsMalformedIsToldWithItsPlace) {
  const auto told = [](std::string body) {
    const CallResult res = post_json(std::move(body));
    return std::to_string(res.status) + " " + res.body;
  };
  EXPECT_EQ(told(""), "400 malformed JSON at byte 1\n");
  EXPECT_EQ(told(R"({"x": z})"), "400 malformed JSON at byte 7\n");
  EXPECT_EQ(told(R"({"x": "a)"
                 "\xff\"}"),
            "400 malformed JSON at byte 9\n");
  EXPECT_EQ(told(R"({"x": 1, "y": 2} 3)"), "400 malformed JSON at byte 18\n");
  EXPECT_EQ(told(std::string(R"({"x": 1, "y": 2})") + std::string("\0z", 2)),
            "400 malformed JSON at byte 17\n");
  EXPECT_EQ(told(R"({"x": 1e999, "y": 2})"), "400 a number is too large\n");
  for (const char* other : {"[]", "null"})
    EXPECT_EQ(told(other), "400 a member is missing, or has another type than expected\n");
  EXPECT_EQ(told("{}"), "400 the member \"x\" is missing\n");
  EXPECT_EQ(told(R"({"x": 1})"), "400 the member \"y\" is missing\n");
  EXPECT_EQ(told(R"({"x": 1, "y": "2"})"), "400 a value must be a number\n")
      << "its place: json_place_test.cpp";
  for (const char* type : {"text/plain", "", "application/jsonx", "+json"})
    EXPECT_EQ(post_json("{}", type).status, 415) << type;
  EXPECT_EQ(call(mirrored, "POST /", {.body = "{}"}).status, 415);
  EXPECT_EQ(post_json(std::string(300'001, ' ')).status, 413);
}

// On a goroutine's stack, which is small.
TEST(Json, NestingCannotUseUpTheStack) {
  tuza::run([] {
    const std::string open(100'000, '['), close(100'000, ']');
    EXPECT_EQ(post_json(open).body, "the JSON is nested too deeply at byte 101\n");
    EXPECT_EQ(post_json(open + close).status, 400);
    std::string objects;
    for (int i = 0; i < 50'000; ++i) objects += "{\"\":";
    EXPECT_EQ(post_json(objects).status, 400);
    const auto any = [](Request& req, ResponseWriter& res) { res.json(req.json<nlohmann::json>()); };
    const std::string deepest = std::string(100, '[') + std::string(100, ']');
    EXPECT_EQ(call(any, "POST /", {.headers = {{"Content-Type", "application/json"}}, .body = deepest}).body,
              deepest);
  });
  EXPECT_EQ(json_too_deep(R"(["[[[[", "\"[[[", {}, {"a": [1]}])", 3), std::nullopt);
  EXPECT_EQ(json_too_deep(R"(["[[[[", "\"[[[", {}, {"a": [1]}])", 2), 29u);
}

}  // namespace
}  // namespace tuza::http::testing
