// What a client sends and takes as values: forms, JSON, a user and a password.
#include <gtest/gtest.h>
#include <tuza/http/nlohmann_json.h>
#include <tuza/http/tests/client_testing.h>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace client_bodies {

struct Item {
  std::string name;
  int count = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Item, name, count)

}  // namespace client_bodies

namespace client_bodies {

// A conversion that checks what it gets.
struct Even {
  int number = 0;
};
inline void from_json(const nlohmann::json& json, Even& even) {
  even.number = json.get<int>();
  if (even.number % 2 != 0) throw std::invalid_argument("an odd number");
}

}  // namespace client_bodies

namespace {

// {"a", 1} would be a text of one letter.
template <class T>
concept TakesBraces = requires(T& to) { to.set_json({"a", 1}); } || requires(T& to) { to.json({"a", 1}); } ||
                      requires(T& to) { to.json(201, {"a", "b"}); };
template <class T>
concept TakesTextOfSize = requires(T& to, const char* text, std::size_t size) { to.json({text, size}); };
static_assert(TakesTextOfSize<ResponseWriter>);
static_assert(!TakesBraces<ClientRequest> && !TakesBraces<ResponseWriter>);
static_assert(JsonDecodable<std::string> && !JsonDecodable<std::string_view> && !JsonDecodable<const char*>);

using client_bodies::Item;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientBodiesTest : public WithProcs {};
TUZA_WITH_PROCS(ClientBodiesTest);

TEST_P(ClientBodiesTest, FormsArriveAsTheyWereMade) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      const Values form = req.form();
      std::string text;
      for (const auto& [name, value] : form) text.append(name).append("=").append(value).append(";");
      res.text(text);
    });
    Client client;
    Values form;
    form.add("name", "a&b=c +%");
    form.add("name", "\xc3\xbc\r\n");
    form.add("", "");
    ClientRequest request(Method::kPost, url_of(server));
    Result<ClientResponse> res = client.send(kNoContext, request.set_form(form));
    EXPECT_EQ(res->body(), "name=a&b=c +%;name=\xc3\xbc\r\n;=;");
    EXPECT_EQ(request.header("Content-Type"), "application/x-www-form-urlencoded");
    EXPECT_EQ(client.send(kNoContext, request.set_form({{"a", "1"}, {"b", "="}}))->body(), "a=1;b==;");
    EXPECT_EQ(client.send(kNoContext, request.set_form({}))->body(), "") << "takes the place of the other";
  });
}

TEST_P(ClientBodiesTest, JsonGoesBothWays) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      const Item item = req.json<Item>();
      res.json(Item{item.name + "!", item.count + 1});
    });
    Client client;
    ClientRequest request(Method::kPost, url_of(server));
    const Result<Item> item = client.send(kNoContext, request.set_json(Item{"nut", 7}))->json<Item>();
    ASSERT_TRUE(item) << item.error().message();
    EXPECT_EQ(item->name, "nut!");
    EXPECT_EQ(item->count, 8);
    request.set_json(R"({"name": "text", "count": 1})");
    EXPECT_EQ(client.send(kNoContext, request)->json<nlohmann::json>()->at("name"), "text!");
  });
}

TEST_P(ClientBodiesTest, WhatIsNotTheJsonIsAnErrorWithItsPlace) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) { res.send("text/html", req.body().value()); });
    Client client;
    const auto message = [&](std::string text, std::optional<std::size_t> bytes_max = std::nullopt) {
      const Result<std::vector<Item>> got =
          client.post(kNoContext, url_of(server), "a/b", std::move(text))->json<std::vector<Item>>(bytes_max);
      if (got) return "items: " + std::to_string(got->size());
      EXPECT_TRUE(got.error().is(Errc::kBadMessage));
      const std::string before = "POST " + url_of(server) + ": read response: ";
      EXPECT_TRUE(got.error().message().starts_with(before)) << got.error().message();
      return got.error().message().substr(before.size());
    };
    EXPECT_EQ(message(R"([{"name": "a", "count": 1}])"), "items: 1") << "whatever its Content-Type";
    EXPECT_EQ(message("<html>Bad Gateway</html>"), "JSON: malformed JSON at byte 1");
    EXPECT_EQ(message(""), "JSON: malformed JSON at byte 1");
    EXPECT_EQ(message(R"([{"name": "a"}])"), "JSON: the member \"count\" is missing");
    EXPECT_TRUE(message(R"([{"name": "a", "count": 1e99}])").contains("count")) << "cut off by no conversion";
    EXPECT_EQ(message(std::string(101, '[')), "JSON: nested too deeply at byte 101");
    EXPECT_EQ(message("[       ]", 8), "body larger than 8 bytes");
    const Result<client_bodies::Even> odd =
        client.post(kNoContext, url_of(server), "a/b", "3")->json<client_bodies::Even>();
    EXPECT_TRUE(odd.error().message().ends_with(": read response: JSON: an odd number"))
        << odd.error().message();
  });
}

TEST_P(ClientBodiesTest, UserAndPasswordAreThoseThatTheServerSees) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      const auto who = req.basic_auth();
      if (!who) return res.error(401);
      res.text(who->user + "|" + who->password);
    });
    Client client;
    ClientRequest request(Method::kGet, url_of(server));
    request.set_basic_auth("first", "one");
    for (const auto& [user, password] : std::map<std::string, std::string>{
             {"ann", "se:cret"}, {"", ""}, {"\xc3\xbc", "\xe2\x82\xac"}, {"a b", std::string(300, 'x')}}) {
      Result<ClientResponse> res = client.send(kNoContext, request.set_basic_auth(user, password));
      EXPECT_EQ(res->body(), user + "|" + password);
    }
    EXPECT_THROW(request.set_basic_auth("a:b", ""), std::invalid_argument);
    EXPECT_THROW(request.set_basic_auth("a\n", ""), std::invalid_argument);
    EXPECT_THROW(request.set_basic_auth("a", std::string(1, '\0')), std::invalid_argument);
  });
}

}  // namespace
}  // namespace tuza::http::testing
