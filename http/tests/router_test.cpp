// Which pattern answers which request.
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>

#include <stdexcept>

namespace tuza::http::testing {
namespace {

// A handler that returns its pattern and the values it got.
Handler naming(const std::string& pattern, std::vector<std::string> names = {}) {
  return [pattern, names = std::move(names)](Request& req, ResponseWriter& res) {
    std::string text = pattern;
    for (const std::string& name : names) text += " " + name + "=" + req.path_value<std::string>(name);
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
        if (r.status == 307) got = "307 " + r.header("location");
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
  expect({{"GET /items/new", "200 GET /items/new"},
          {"GET /items/7", "200 GET /items/{id} id=7"},
          {"GET /items/new/parts", "200 GET /items/{id}/parts id=new"},
          {"GET /items/7/other/x", "200 GET /items/{rest...} rest=7/other/x"},
          {"GET /items/", "200 GET /items/{rest...} rest="},
          {"GET /items", "307 /items/"},
          {"GET /", "404 Not Found\n"}});
}

TEST_F(RouterTest, LongTextsDifferAtTheirEndsToo) {
  const std::string sixteen = "/0123456789abcdef";  // as much as a node has at hand
  for (const char* const end : {"", "g", "ghijklmn", "ghijklmnopqrstuv", "ghijklmnopqrstuw"}) {
    add("GET " + sixteen + end);
  }
  expect({{"GET " + sixteen, "200 GET " + sixteen},
          {"GET " + sixteen + "g", "200 GET " + sixteen + "g"},
          {"GET " + sixteen + "ghijklmn", "200 GET " + sixteen + "ghijklmn"},
          {"GET " + sixteen + "ghijklmnopqrstuv", "200 GET " + sixteen + "ghijklmnopqrstuv"},
          {"GET " + sixteen + "ghijklmnopqrstuw", "200 GET " + sixteen + "ghijklmnopqrstuw"},
          {"GET " + sixteen + "ghijklmnopqrstux", "404 Not Found\n"},
          {"GET " + sixteen + "h", "404 Not Found\n"},
          {"GET " + sixteen + "%67", "200 GET " + sixteen + "g"},
          {"GET /0123456789abcde", "404 Not Found\n"}});
}

TEST_F(RouterTest, AFinalSlashAnswersEverythingBelow) {
  add("GET /{$}");
  add("/static/");
  add("GET /static/logo");
  add("GET /exact/{$}");
  expect({{"GET /", "200 GET /{$}"},
          {"GET /exact/", "200 GET /exact/{$}"},
          {"GET /exact", "307 /exact/"},
          {"GET /exact/x", "404 Not Found\n"},
          {"GET /x", "404 Not Found\n"},
          {"GET /static/", "200 /static/"},
          {"GET /static/a/b", "200 /static/"},
          {"PUT /static/a/b", "200 /static/"},
          {"GET /static/logo", "200 GET /static/logo"},
          {"PUT /static/logo", "200 /static/"},
          {"GET /static?a=b", "307 /static/?a=b"}});
}

TEST_F(RouterTest, ASlashAloneAnswersEverythingElse) {
  add("/");
  add("GET /a/");
  add("GET /a/{x}", {"x"});
  expect({{"GET /", "200 /"},
          {"GET /x/y", "200 /"},
          {"GET /a", "307 /a/"},
          {"POST /a", "200 /"},
          {"GET /a/1", "200 GET /a/{x} x=1"},
          {"GET /a/1/2", "200 GET /a/"},
          {"POST /a/1", "200 /"}});
}

TEST_F(RouterTest, PathsAreCleanedByRedirects) {
  add("GET /a/b");
  add("GET /{$}");
  expect({{"GET //a/b", "307 /a/b"},
          {"GET /a/./b?q=1", "307 /a/b?q=1"},
          {"GET /a/x/%2e%2E/b", "307 /a/b"},
          {"GET /../../a//b/", "307 /a/b/"},
          {"GET /..", "307 /"},
          {"GET /a/.b", "404 Not Found\n"},
          {"GET /a/...", "404 Not Found\n"},
          {"POST //example.com/", "307 /example.com/"}});
}

TEST_F(RouterTest, RedirectsCanBeSwitchedOff) {
  add("GET /fetch/{url...}", {"url"});
  add("GET /name/{x}", {"x"});
  add("GET /dir/");
  router_.redirects({.to_clean_path = false});
  expect({{"GET /fetch/http://host//a/../b?q", "200 GET /fetch/{url...} url=http://host//a/../b"},
          {"GET /name/..", "200 GET /name/{x} x=.."},
          {"GET /name//", "404 Not Found\n"},
          {"GET /dir", "307 /dir/"}});
  router_ = Router();
  add("GET /dir/");
  add("GET /a/{$}");
  add("/a");
  router_.redirects({.to_missing_slash = false});
  expect({{"GET /dir", "404 Not Found\n"}, {"GET /dir/x", "200 GET /dir/"}, {"GET //dir/", "307 /dir/"}});
  router_ = Router();
  add("GET /dir/");
  add("/");
  router_.redirects({.to_missing_slash = false});
  expect({{"GET /dir", "200 /"}});
}

TEST_F(RouterTest, HostsPrecede) {
  add("GET /{x}", {"x"});
  add("GET a/only");
  add("b.example/{y...}", {"y"});
  add("a/dir/");
  add("GET /dir");
  expect({{"GET /only", "200 GET a/only"},
          {"GET /other", "200 GET /{x} x=other"},
          {"GET /dir", "200 GET /dir"},
          {"POST /dir", "307 /dir/"}});
}

TEST_F(RouterTest, MethodsHeadAllowAndOptions) {
  add("GET /a");
  add("POST /a");
  add("/any/thing");
  add("DELETE /{x}", {"x"});
  expect({{"GET /a", "200 GET /a"},
          {"HEAD /a", "200 "},
          {"POST /a", "200 POST /a"},
          {"DELETE /a", "200 DELETE /{x} x=a"},
          {"PUT /a", "405 GET, HEAD, POST, DELETE, OPTIONS"},
          {"OPTIONS /a", "204 GET, HEAD, POST, DELETE, OPTIONS"},
          {"TRACE /any/thing", "200 /any/thing"},
          {"GET /none", "405 DELETE, OPTIONS"},
          {"OPTIONS *", "204 GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"}});
}

// RFC 9110 9.3.7: what the server does, not what a server could do.
TEST(Router, OptionsOfTheServerAreThoseOfItsPatterns) {
  const auto allow = [](const Router& router) {
    const CallResult res = call(router, "OPTIONS *");
    return std::to_string(res.status) + " " + std::string(res.header("Allow").value_or("-"));
  };
  Router router;
  EXPECT_EQ(allow(router), "204 OPTIONS");
  router.handle("GET /a", naming("a"));
  EXPECT_EQ(allow(router), "204 GET, HEAD, OPTIONS");
  router.handle("a/{x...}", naming("b"));
  router.handle("CONNECT /", naming("c"));
  EXPECT_EQ(allow(router), "204 GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");
  router.handle("TRACE /t", naming("d"));
  EXPECT_EQ(allow(router), "204 GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH");
}

TEST_F(RouterTest, DecodesSegmentsAfterTakingThePathApart) {
  add("GET /a b/{x}", {"x"});
  add("GET /files/{path...}", {"path"});
  expect({{"GET /a%20b/c%2Fd", "200 GET /a b/{x} x=c/d"},
          {"GET /a%20b/c/d", "404 Not Found\n"},
          {"GET /%61%20b/%41%00", std::string("200 GET /a b/{x} x=A\0", 21)},
          {"GET /files/x%2e%2e/y", "200 GET /files/{path...} path=x../y"},
          {"GET /files/%2F", "200 GET /files/{path...} path=/"}});
}

TEST_F(RouterTest, ValuesAreDecodedOnceAndQueryKeysAreCompared) {
  router_.handle("GET /{x}/{y}", [](Request& req, ResponseWriter& res) {
    const std::string_view x = req.path_value("x").value_or("");
    EXPECT_EQ(req.path_value("x")->data(), x.data()) << "the same bytes, not once more decoded";
    std::string text = std::string(x) + "," + req.path_value<std::string>("y");
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
  for (const char* pattern : {"",        "GET",  "items", "BREW /",   "GET items", "/a//b",  "/{", "/a{b}",
                              "/{a}b",   "/{}",  "/{1}",  "/{a}/{a}", "/{a...}/b", "/{...}", "//", "/{$}/a",
                              "/a/../b", "/%2e", "/a{$}", "a",        "a:80/",     "{h}/a"}) {
    EXPECT_THROW(Router().handle(pattern, naming("x")), std::invalid_argument) << pattern;
  }
  // Hosts that no Host field has.
  for (const char* host :
       {"caf\xc3\xa9.example", "ex%61mple", "a,b", "user@h", "h#", "[::1]", "*.example", "a?b"})
    EXPECT_THROW(Router().handle(std::string(host) + "/x", naming("x")), std::invalid_argument) << host;
  Router router;
  router.handle("GET /a/{b}", naming("first"));
  router.handle("/a/{b}", naming("any method is another"));
  EXPECT_THROW(router.handle("GET /a/{c}", naming("second")), std::invalid_argument);
  EXPECT_THROW(router.handle("/nobody", nullptr), std::invalid_argument);
  Result<void> (*const none)(Request&, ResponseWriter&) = nullptr;
  EXPECT_THROW(router.handle("/nobody", none), std::invalid_argument);
  EXPECT_THROW(router.mount("/x/", naming("x")), std::invalid_argument);
  EXPECT_THROW(router.mount("/x", nullptr), std::invalid_argument);
  EXPECT_THROW((void)router.group(""), std::invalid_argument);
  EXPECT_THROW(http::Server(nullptr), std::invalid_argument);
}

// Pairs of patterns, and whether they conflict: some request matches both, and neither is more specific.
TEST(Router, PatternsOfWhichNoneIsMoreSpecificConflict) {
  const struct {
    const char *a, *b;
    bool conflict;
  } cases[] = {{"/a/{x}", "/{y}/b", true},
               {"/a/{x}", "/a/b", false},
               {"GET /a/b", "/a/{x}", false},
               {"GET /a/{x}", "/a/b", false},
               {"GET /", "/a/", false},
               {"GET /a/{x}", "/{y}/b", true},
               {"GET /a/{x}", "HEAD /{y}/b", true},
               {"GET /a/{x}", "POST /{y}/b", false},
               {"GET /a", "POST /a", false},
               {"GET /a", "HEAD /a", false},
               {"HEAD /{x}", "GET /a", false},
               {"HEAD /a", "GET /{x}", false},
               {"/a/{x...}", "/a/{y...}", true},
               {"/a/", "/a/{x...}", true},
               {"/a/{x...}", "/a/b/c", false},
               {"/a/{x...}", "/{y}/b", true},
               {"/a/{$}", "/a/", false},
               {"/a/{$}", "/a/{x}", false},
               {"/{x}/{$}", "/a/", true},
               {"/a/{x}/c", "/a/{y...}", false},
               {"/{x}/b/{z}", "/a/{y}/c", true},
               {"/{x}/b/{z}", "/a/{y}/c/d", false},
               {"h/a", "/a", false},
               {"h/a/{x}", "/{y}/b", false},
               {"H/a", "h/a", true},
               {"GET /a", "GET /a", true}};
  for (const auto& one : cases) {
    for (const auto& [first, second] : {std::pair(one.a, one.b), std::pair(one.b, one.a)}) {
      Router router;
      router.handle(first, naming("first"));
      std::string error;
      try {
        router.handle(second, naming("second"));
      } catch (const std::invalid_argument& e) {
        error = e.what();
      }
      EXPECT_EQ(!error.empty(), one.conflict) << first << " and " << second << ": " << error;
      if (!one.conflict) continue;
      EXPECT_NE(error.find(std::string("\"") + first + "\" ("), std::string::npos) << error;
      EXPECT_NE(error.find("router_test.cpp:"), error.rfind("router_test.cpp:")) << "both places: " << error;
    }
  }
}

TEST_F(RouterTest, ThePathDecidesBeforeTheMethod) {
  add("GET /");
  add("/api/");
  add("POST /api/{x}", {"x"});
  add("/api/fixed");
  add("HEAD /{x}", {"x"});
  add("GET /page");
  expect({{"GET /", "200 GET /"},
          {"GET /api/", "200 /api/"},
          {"GET /api/x", "200 /api/"},
          {"POST /api/x", "200 POST /api/{x} x=x"},
          {"POST /api/fixed", "200 /api/fixed"},
          {"GET /api", "307 /api/"},
          {"HEAD /page", "200 "},
          {"POST /x", "405 GET, HEAD, OPTIONS"}});
}

TEST_F(RouterTest, AHostMayBeTheOnlyOne) {
  add("a/x");
  expect({{"GET /x", "200 a/x"}, {"GET /y", "404 Not Found\n"}});
}

TEST_F(RouterTest, PatternsMayBeEncoded) {
  add("GET /a%20b/%7Bx%7D");
  expect({{"GET /a%20b/{x}", "400 malformed request target\n"},
          {"GET /a%20b/%7bx%7D", "200 GET /a%20b/%7Bx%7D"}});
}

TEST_F(RouterTest, TheRestOfTheRootMayBeEmpty) {
  Router inner;
  inner.handle("/{rest...}", naming("inner", {"rest"}));
  router_.mount("/in", std::move(inner));
  add("/files/{path...}", {"path"});
  add("b/{path...}", {"path"});
  add("/{path...}", {"path"});
  expect({{"GET /", "200 /{path...} path="},
          {"GET /?x=1", "200 /{path...} path="},
          {"GET /a/b", "200 /{path...} path=a/b"},
          {"GET http://b/", "200 b/{path...} path="},
          {"GET http://b", "200 b/{path...} path="},
          {"GET /files/", "200 /files/{path...} path="},
          {"GET /in/", "200 inner rest="},
          {"GET //", "307 /"}});
}

TEST_F(RouterTest, EscapesInPatternsAndPathsMeanTheSame) {
  add("GET /my%20files/{x}", {"x"});
  add("GET /100%25");
  add("GET /a%2Fb/%7Ex/");
  Router inner;
  inner.handle("/{x}", naming("inner", {"x"}));
  router_.mount("/sub%20tree", std::move(inner));
  router_.group("/the%20group").handle("GET /x", naming("group"));
  expect({{"GET /my%20files/1", "200 GET /my%20files/{x} x=1"},
          {"GET /%6dy%20fil%65s/1", "200 GET /my%20files/{x} x=1"},
          {"GET /100%25", "200 GET /100%25"},
          {"GET /100%", "200 GET /100%25"},
          {"GET /100%2525", "404 Not Found\n"},
          {"GET /a%2fb/~x/y", "200 GET /a%2Fb/%7Ex/"},
          {"GET /a%2fb/~x", "307 /a%2fb/~x/"},
          {"GET /a/b/~x/", "404 Not Found\n"},
          {"GET /sub%20tree/1", "200 inner x=1"},
          {"GET /s%75b%20tree/1", "200 inner x=1"},
          {"GET /the%20group/x", "200 group"}});
  Router twice;
  twice.handle("GET /my files", naming("first"));
  EXPECT_THROW(twice.handle("GET /my%20files", naming("second")), std::invalid_argument);
}

TEST_F(RouterTest, APercentSignThatBeginsNoEscapeIsOne) {
  add("GET /100%");
  add("GET /caf\xc3\xa9");
  add("GET /of/{x}", {"x"});
  add("GET /all/{x...}", {"x"});
  add("GET /dir/");
  expect({{"GET /100%", "200 GET /100%"},
          {"GET /100%25", "200 GET /100%"},
          {"GET /10%30%", "200 GET /100%"},
          {"GET /caf\xc3\xa9", "200 GET /caf\xc3\xa9"},
          {"GET /caf%C3%a9", "200 GET /caf\xc3\xa9"},
          {"GET /of/%zz%41%4", "200 GET /of/{x} x=%zzA%4"},
          {"GET /of/^_^", "200 GET /of/{x} x=^_^"},
          {"GET /all/50%/%2f/\xe2\x9c\x93", "200 GET /all/{x...} x=50%///\xe2\x9c\x93"},
          {"GET /%2e%/%2/", "404 Not Found\n"}});
}

// RFC 9110 10.2.2: Location is a URI, and a client may read other bytes of a field as Latin-1.
TEST_F(RouterTest, RedirectsAreUris) {
  add("GET /caf\xc3\xa9/");
  add("GET /dir/");
  expect({{"GET /dir?a={\"b\":1}", "400 malformed request target\n"},
          {"GET /dir?a={%22b%22:1}&c=C:\\d`^&e=100%&f=\xc3\xa9",
           "307 /dir/?a=%7B%22b%22:1%7D&c=C:%5Cd%60%5E&e=100%&f=%C3%A9"},
          {"GET /caf\xc3\xa9", "307 /caf%C3%A9/"},
          {"GET //caf\xc3\xa9/^", "307 /caf%C3%A9/%5E"}});
}

// The chain of a mounted router is called within that of another one, which may call on after it.
TEST(Router, MiddlewareMayCallTwice) {
  int failures = 1;
  Router inner;
  inner.use([](Handler next) -> Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) { next(req, res); };
  });
  inner.handle("/x", [&failures](Request&, ResponseWriter& res) {
    if (failures-- > 0) throw std::runtime_error("on purpose");
    res.text("second");
  });
  Router router;
  std::string seen;
  router.use([&seen](Handler next) -> Handler {
    return [&seen, next = std::move(next)](Request& req, ResponseWriter& res) {
      try {
        next(req, res);
      } catch (const std::runtime_error&) {
        seen = std::string(req.pattern()) + " " + std::string(req.path());
        next(req, res);
      }
    };
  });
  router.mount("/in", std::move(inner));
  EXPECT_EQ(call(router, "GET /in/x").body, "second");
  EXPECT_EQ(seen, "/in/x /in/x");
}

// Notes its name, then the pattern that it sees.
Middleware noting(std::string& seen, const std::string& name) {
  return [&seen, name](Handler next) -> Handler {
    return [&seen, name, next = std::move(next)](Request& req, ResponseWriter& res) {
      seen += name + "(" + std::string(req.pattern()) + ")";
      next(req, res);
    };
  };
}

TEST(Router, MiddlewareGroupsAndMounts) {
  std::string seen;
  Router inner;
  inner.use(noting(seen, "inner"));
  inner.handle("GET /x/{id}", [&seen](Request& req, ResponseWriter& res) {
    seen += "!" + std::string(req.path());
    res.text(req.path_value<std::string_view>("id"));
  });
  inner.handle("/tree/", naming("tree"));
  Router router;
  router.use(noting(seen, "first"));
  router.use(noting(seen, "second"));
  router.handle("GET /plain", naming("plain"));
  RouteGroup api = router.group("/api");
  api.handle("GET /early", naming("early"));
  api.use(noting(seen, "group"));
  api.handle("POST /items/{id}", naming("items", {"id"}));
  RouteGroup admin = api.group("/admin");
  admin.use(noting(seen, "admin"));
  admin.handle("/{$}", naming("admin"));
  router.mount("/debug", std::move(inner));
  router.mount("/deep/er", naming("leaf"));

  const auto ask = [&](std::string_view request) {
    seen.clear();
    const CallResult res = call(router, request);
    return std::to_string(res.status) + " " + res.body + " " + seen;
  };
  EXPECT_EQ(ask("GET /plain"), "200 plain first(GET /plain)second(GET /plain)");
  EXPECT_EQ(ask("GET /nowhere"), "404 Not Found\n first()second()");
  EXPECT_EQ(ask("GET /api/early"), "200 early first(GET /api/early)second(GET /api/early)");
  EXPECT_EQ(
      ask("POST /api/items/7"),
      "200 items id=7 first(POST /api/items/{id})second(POST /api/items/{id})group(POST /api/items/{id})");
  EXPECT_EQ(
      ask("PUT /api/admin/"),
      "200 admin first(/api/admin/{$})second(/api/admin/{$})group(/api/admin/{$})admin(/api/admin/{$})");
  EXPECT_EQ(ask("GET /debug/x/7"), "200 7 first(/debug/)second(/debug/)inner(GET /x/{id})!/x/7");
  EXPECT_EQ(ask("GET /%64ebug/x/7"), "200 7 first(/debug/)second(/debug/)inner(GET /x/{id})!/x/7");
  EXPECT_EQ(ask("GET /deep/er/a"), "200 leaf first(/deep/er/)second(/deep/er/)");
  EXPECT_EQ(call(router, "GET /debug").header("Location"), "/debug/");
  EXPECT_EQ(call(router, "GET /debug/tree?q").header("Location"), "/debug/tree/?q");
  EXPECT_EQ(call(router, "GET /debug/x/../tree/").header("Location"), "/debug/tree/");

  EXPECT_EQ(call(router, "GET /api").status, 404);
  EXPECT_THROW(api.handle("GET", naming("x")), std::invalid_argument);
  EXPECT_THROW(api.handle("x", naming("x")), std::invalid_argument);
  router.group("/api", [](RouteGroup& same) {
    same.group("/deep", [](RouteGroup& deep) { deep.handle("GET /x", naming("deep")); });
  });
  EXPECT_EQ(call(router, "GET /api/deep/x").body, "deep");
  api.handle("GET ", naming("root"));
  EXPECT_EQ(call(router, "GET /api").body, "root");

  std::string pattern, path;
  const Handler after = with(std::move(router), [&](Handler next) -> Handler {
    return [&, next = std::move(next)](Request& req, ResponseWriter& res) {
      next(req, res);
      pattern = req.pattern();
      path = req.path();
    };
  });
  EXPECT_EQ(call(after, "GET /debug/x/7").status, 200);
  EXPECT_EQ(pattern + " " + path, "GET /debug/x/{id} /debug/x/7");
}

}  // namespace
}  // namespace tuza::http::testing
