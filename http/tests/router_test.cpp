// Which pattern answers which request.
#include <tuza/http/tests/http_testing.h>

#include <stdexcept>

namespace tuza::http::testing {
namespace {

// A handler that returns its pattern and the values it got.
Handler naming(const std::string& pattern, std::vector<std::string> names = {}) {
  return [pattern, names = std::move(names)](Request& req, ResponseWriter& res) {
    std::string text = pattern;
    for (const std::string& name : names) text += " " + name + "=" + std::string(req.path_value(name));
    res.text(text);
  };
}

class RouterTest : public ::testing::Test {
 protected:
  void add(const std::string& pattern, std::vector<std::string> names = {}) {
    router_.handle(pattern, naming(pattern, std::move(names)));
  }
  // "status body" for each request line.
  void expect(const std::vector<std::pair<std::string, std::string>>& cases) {
    tuza::testing::run_with(1, [&] {
      TestServer server(std::move(router_));
      for (const auto& [line, expected] : cases) {
        const Response r =
            fetch(server.address(), line + " HTTP/1.1\r\nHost: a\r\n\r\n", line.starts_with("HEAD"));
        std::string got = std::to_string(r.status) + " " + r.body;
        if (r.status == 405 || r.status == 204) got = std::to_string(r.status) + " " + r.header("allow");
        EXPECT_EQ(got, expected) << line;
      }
    });
  }
  Router router_;
};

TEST_F(RouterTest, TextGoesBeforeNamesAndNamesBeforeTheRest) {
  add("GET /items/new");
  add("GET /items/{id}", {"id"});
  add("GET /items/{id}/parts", {"id"});
  add("GET /items/{rest...}", {"rest"});
  add("GET /{any}/parts", {"any"});
  expect({{"GET /items/new", "200 GET /items/new"},
          {"GET /items/7", "200 GET /items/{id} id=7"},
          {"GET /items/new/parts", "200 GET /items/{id}/parts id=new"},
          {"GET /items/7/other/x", "200 GET /items/{rest...} rest=7/other/x"},
          {"GET /items/", "200 GET /items/{rest...} rest="},
          {"GET /other/parts", "200 GET /{any}/parts any=other"},
          {"GET /items", "404 Not Found\n"},
          {"GET /", "404 Not Found\n"}});
}

TEST_F(RouterTest, AFinalSlashAnswersEverythingBelow) {
  add("GET /");
  add("/static/");
  add("GET /static/logo");
  expect({{"GET /", "200 GET /"},
          {"GET /x", "404 Not Found\n"},
          {"GET /static/", "200 /static/"},
          {"GET /static/a/b", "200 /static/"},
          {"PUT /static/a/b", "200 /static/"},
          {"GET /static/logo", "200 GET /static/logo"},
          {"PUT /static/logo", "200 /static/"},
          {"GET /static", "404 Not Found\n"}});
}

TEST_F(RouterTest, MethodsHeadAllowAndOptions) {
  add("GET /a");
  add("POST /a");
  add("/any");
  add("DELETE /{x}", {"x"});
  expect({{"GET /a", "200 GET /a"},
          {"HEAD /a", "200 "},
          {"POST /a", "200 POST /a"},
          {"DELETE /a", "200 DELETE /{x} x=a"},
          {"PUT /a", "405 GET, HEAD, POST, DELETE, OPTIONS"},
          {"OPTIONS /a", "204 GET, HEAD, POST, DELETE, OPTIONS"},
          {"TRACE /any", "200 /any"},
          {"GET /none", "405 DELETE, OPTIONS"},
          {"OPTIONS *", "204 GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH"}});
}

TEST_F(RouterTest, DecodesSegmentsAfterTakingThePathApart) {
  add("GET /a b/{x}", {"x"});
  add("GET /files/{path...}", {"path"});
  expect({{"GET /a%20b/c%2Fd", "200 GET /a b/{x} x=c/d"},
          {"GET /a%20b/c/d", "404 Not Found\n"},
          {"GET /%61%20b/%41%00", std::string("200 GET /a b/{x} x=A\0", 21)},
          {"GET /files/x%2e%2e/y", "200 GET /files/{path...} path=x../y"},
          {"GET /files//double", "200 GET /files/{path...} path=/double"},
          {"GET //a", "404 Not Found\n"}});
}

TEST_F(RouterTest, ValuesAreDecodedOnceAndQueryKeysAreCompared) {
  router_.handle("GET /{x}/{y}", [](Request& req, ResponseWriter& res) {
    const std::string_view x = req.path_value("x");
    EXPECT_EQ(req.path_value("x").data(), x.data()) << "the same bytes, not once more decoded";
    std::string text = std::string(x) + "," + std::string(req.path_value("y"));
    for (const char* key : {"k", "a b", "%", "", "k1"}) {
      text += "," + std::string(req.query_value(key).value_or("-"));
    }
    res.text(text);
  });
  expect({{"GET /%2541/%41?k1=1&%6b=2", "200 %41,A,2,-,-,-,1"},
          {"GET /a/b?a%20b=c&a+b=d", "200 a,b,-,c,-,-,-"},
          {"GET /a/b?kk=1&k&k=2", "200 a,b,,-,-,-,-"},
          {"GET /a/b?%25=%25&=e", "200 a,b,-,-,%,e,-"}});
}

TEST(Router, RefusesPatternsThatMakeNoSense) {
  for (const char* pattern : {"", "GET", "items", "BREW /", "GET items", "/a//b", "/{", "/a{b}", "/{a}b",
                              "/{}", "/{1}", "/{a}/{a}", "/{a...}/b", "/{...}", "//"}) {
    EXPECT_THROW(Router().handle(pattern, naming("x")), std::invalid_argument) << pattern;
  }
  Router router;
  router.handle("GET /a/{b}", naming("first"));
  router.handle("/a/{b}", naming("any method is another"));
  EXPECT_THROW(router.handle("GET /a/{c}", naming("second")), std::invalid_argument);
  EXPECT_THROW(router.handle("/nobody", nullptr), std::invalid_argument);
  EXPECT_THROW(Server(nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
