// What a client is told of JSON that is no T, with JSON_DIAGNOSTICS: the place of the member. A file of its own, since all of
// a program defines that macro alike (here: this file, whose types no other one has).
#include <tuza/http/nlohmann_json.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/testing.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

struct OrderItem {
  std::string name;
  std::uint8_t qty = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OrderItem, name, qty)

struct PlacedOrder {
  std::vector<OrderItem> items;
  std::map<std::string, std::pair<int, bool>> options;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlacedOrder, items, options)

std::string told(const std::string& body) {
  const auto handler = [](Request& req, ResponseWriter& res) { res.json(req.json<PlacedOrder>()); };
  const CallResult res =
      call(handler, "POST /", {.headers = {{"Content-Type", "application/json"}}, .body = body});
  return res.status == 400 ? res.body : std::to_string(res.status);
}

std::string with_second(const std::string& item) {
  return told(R"({"items": [{"name": "a", "qty": 1}, )" + item + R"(], "options": {}})");
}
std::string with_options(const std::string& options) {
  return told(R"({"items": [], "options": )" + options + "}");
}

TEST(JsonPlace, OfAMember) {
  EXPECT_EQ(with_second(R"({"name": "b", "qty": 2})"), "200");
  EXPECT_EQ(with_second(R"({"name": "b", "qty": "2"})"), "items[1].qty: must be a number\n");
  EXPECT_EQ(with_second(R"({"name": 2, "qty": 2})"), "items[1].name: must be a string\n");
  EXPECT_EQ(with_second(R"({"name": "b"})"), "items[1].qty: is missing\n");
  EXPECT_EQ(with_second("[]"), "items[1]: has another type than expected\n");
  EXPECT_EQ(with_second(R"({"name": "b", "qty": 256})"), "items[1].qty: does not fit its type\n");
  EXPECT_EQ(with_second(R"({"name": "b", "qty": true})"), "items[1].qty: does not fit its type\n");
  EXPECT_EQ(told(R"({"items": {}, "options": {}})"), "items: must be an array\n");
  EXPECT_EQ(with_options("[]"), "options: must be an object\n");
  EXPECT_EQ(with_options(R"({"a": [1, 2]})"), "options.a[1]: must be a boolean\n");
  EXPECT_EQ(with_options(R"({"a": [1]})"), "options.a: has too few elements\n");
}

TEST(JsonPlace, OfTheWholeText) {
  EXPECT_EQ(told("{}"), "the member \"items\" is missing\n");
  EXPECT_EQ(told("[]"), "a member is missing, or has another type than expected\n");
  const auto one = [](Request& req, ResponseWriter& res) { res.json(req.json<signed char>()); };
  const auto told_of = [&](std::string body) {
    return call(one, "POST /", {.headers = {{"Content-Type", "application/json"}}, .body = std::move(body)})
        .body;
  };
  EXPECT_EQ(told_of("128"), "a value does not fit its type\n");
  EXPECT_EQ(told_of("[]"), "a value must be a number\n");
}

// The text of the library has them as they are.
TEST(JsonPlace, ANameFromTheClientMisleadsNobody) {
  EXPECT_EQ(with_options(R"({"a/b~c": [1, 2]})"), "options.a/b~c[1]: must be a boolean\n");
  EXPECT_EQ(with_options(R"({"1": [1, 2]})"), "options.1[1]: must be a boolean\n");
  EXPECT_EQ(with_options(R"({"a) key 'x' not found": [1, 2]})"),
            "options.a) key 'x' not found[1]: must be a boolean\n");
  EXPECT_EQ(with_options(R"({"a) type must be string, but is b": [1, 2]})"),
            "options.a) type must be string, but is b[1]: must be a boolean\n");
  EXPECT_EQ(with_options(R"({"\r\n\t\u007f": [1, 2]})"), "options.????[1]: must be a boolean\n");
  EXPECT_EQ(with_options(R"({")" + std::string(1000, 'a') + R"(": [1, 2]})"), "a value must be a boolean\n");
}

}  // namespace
}  // namespace tuza::http::testing
