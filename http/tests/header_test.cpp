// Header fields as a handler sets and reads them, typed getters, and StatusError.
#include <gtest/gtest.h>
#include <tuza/http/middleware.h>
#include <tuza/http/router.h>
#include <tuza/http/server.h>
#include <tuza/http/status_error.h>
#include <tuza/http/testing.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::http {
namespace {

using testing::call;

std::string list(const auto& range) {
  std::string text;
  for (const auto& [name, value] : range) text.append(name).append("=").append(value).append(";");
  return text;
}

TEST(Headers, SetReplacesAddAddsRemoveRemoves) {
  const auto got = call(
      [](Request&, ResponseWriter& res) {
        res.set_header("X-A", "1");
        res.add_header("Vary", "Accept");
        res.add_header("vary", "Cookie");
        res.set_header("x-a", "2");
        res.set_header("X-AB", "3");
        EXPECT_EQ(res.header("X-A"), "2");
        EXPECT_EQ(res.header("VARY"), "Accept");
        EXPECT_EQ(res.header("X-"), std::nullopt);
        EXPECT_EQ(list(res.headers()), "Vary=Accept;vary=Cookie;x-a=2;X-AB=3;");
        res.set_header("Vary", "*");
        res.remove_header("X-AB");
        res.remove_header("X-Never");
        res.text("");
      },
      "GET /");
  EXPECT_EQ(list(got.headers), "x-a=2;Vary=*;Content-Type=text/plain; charset=utf-8;Content-Length=0;");
}

TEST(Headers, AValueCanBeCopiedFromAnotherFieldOrSetAgain) {
  const std::string large(3000, 'v');
  const auto got = call(
      [&large](Request&, ResponseWriter& res) {
        res.add_header("X-A", large);
        res.add_header("X-B", *res.header("X-A"));
        res.set_header("X-A", *res.header("X-A"));
        res.send(res.header("X-B")->substr(0, 1), "");
      },
      "GET /");
  EXPECT_EQ(got.header("X-A"), large);
  EXPECT_EQ(got.header("X-B"), large);
  EXPECT_EQ(got.header("Content-Type"), "v");
}

TEST(Headers, ALengthCanBeReadAndTakenBack) {
  const auto got = call(
      [](Request&, ResponseWriter& res) {
        res.set_header("Content-Length", "7");
        EXPECT_EQ(res.header("content-length"), "7");
        res.set_header("Content-Length", "18446744073709551615");
        EXPECT_EQ(res.header("content-length"), "18446744073709551615");
        res.remove_header("content-length");
        EXPECT_EQ(res.header("content-length"), std::nullopt);
        (void)res.write("four");
      },
      "GET /");
  EXPECT_EQ(got.header("Content-Length"), "4");
  EXPECT_TRUE(got.complete);
}

TEST(Headers, AContentTypeThatWasRemovedIsSetBySend) {
  const auto got = call(
      [](Request&, ResponseWriter& res) {
        res.set_header("Content-Type", "a/b");
        res.remove_header("Content-Type");
        res.json("{}");
      },
      "GET /");
  EXPECT_EQ(got.header("Content-Type"), "application/json");
}

TEST(Headers, NothingChangesOnceTheResponseHasBegun) {
  const auto got = call(
      [](Request&, ResponseWriter& res) {
        res.text("x");
        EXPECT_THROW(res.set_header("A", "b"), std::logic_error);
        EXPECT_THROW(res.remove_header("Content-Type"), std::logic_error);
        EXPECT_EQ(res.header("Content-Type"), "text/plain; charset=utf-8");
      },
      "GET /");
  EXPECT_EQ(got.body, "x");
}

TEST(Headers, OfARequestAreARange) {
  const auto got = call(
      [](Request& req, ResponseWriter& res) {
        EXPECT_EQ(req.headers().size(), 3u);
        res.text(list(req.headers()));
      },
      "GET /", {.headers = {{"A", "1"}, {"a", "  2\t"}}});
  EXPECT_EQ(got.body, "A=1;a=2;Host=example.com;");
}

TEST(TypedValues, AreNumbersOr404Or400) {
  Router router;
  router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
    const int id = req.path_value<int>("id");
    const auto limit = req.query_value<unsigned>("limit");
    const auto ratio = req.query_value<double>("ratio");
    const auto full = req.query_value<bool>("full");
    const auto depth = req.header<short>("Depth");
    res.text(std::to_string(id) + "," + std::to_string(limit.value_or(20)) + "," +
             std::to_string(ratio.value_or(0)) + "," + std::to_string(full.value_or(false)) + "," +
             std::to_string(depth.value_or(0)));
  });
  EXPECT_EQ(call(router, "GET /items/-7").body, "-7,20,0.000000,0,0");
  EXPECT_EQ(call(router, "GET /items/7?limit=%35&ratio=1.5&full=true", {.headers = {{"Depth", "-3"}}}).body,
            "7,5,1.500000,1,-3");
  for (const char* path : {"x", "7x", "+7", "%207", "99999999999", "7.0", "0x7"}) {
    const auto got = call(router, std::string("GET /items/") + path);
    EXPECT_EQ(got.status, 404) << path;
    EXPECT_FALSE(got.closes);
  }
  for (const char* query : {"limit=-1", "limit=", "ratio=x", "full=yes", "limit=4294967296"}) {
    EXPECT_EQ(call(router, std::string("GET /items/1?") + query).status, 400) << query;
  }
  const auto got = call(router, "GET /items/1?limit=x");
  EXPECT_EQ(got.body, "malformed query parameter limit\n");
  EXPECT_EQ(call(router, "GET /items/1", {.headers = {{"Depth", "infinity"}}}).body,
            "malformed header field Depth\n");
}

TEST(TypedValues, ANameThatThePatternLacksIsTheProgramsMistake) {
  Router router;
  router.handle("GET /{id}", [](Request& req, ResponseWriter& res) {
    EXPECT_EQ(req.path_value("no"), std::nullopt);
    res.text(req.path_value<std::string>("no"));
  });
  EXPECT_EQ(call(router, "GET /1").status, 500);
}

TEST(StatusErrors, AreAnswersAndKeepTheConnection) {
  std::vector<int> seen;
  const Handler handler = [&seen](Request& request, ResponseWriter& response) {
    const Handler inner = [](Request& req, ResponseWriter& res) {
      res.set_header("WWW-Authenticate", "Basic");
      res.set_header("ETag", "\"1\"");
      (void)res.write("discarded");
      if (req.path() == "/plain") throw StatusError(401);
      throw StatusError(403, "read-only");
    };
    observe(inner, request, response, [&seen](int status) { seen.push_back(status); });
  };
  const auto plain = call(handler, "GET /plain"), text = call(handler, "GET /text");
  EXPECT_EQ(plain.status, 401);
  EXPECT_EQ(plain.body, "Unauthorized\n");
  EXPECT_EQ(plain.header("WWW-Authenticate"), "Basic");
  EXPECT_EQ(plain.header("ETag"), std::nullopt);
  EXPECT_FALSE(plain.closes);
  EXPECT_EQ(plain.exception, nullptr);
  EXPECT_EQ(text.status, 403);
  EXPECT_EQ(text.body, "read-only\n");
  EXPECT_EQ(seen, (std::vector{401, 403}));
  EXPECT_THROW(StatusError(200), std::invalid_argument);
}

TEST(StatusErrors, AfterTheBeginningCutTheResponseOff) {
  const auto got = call(
      [](Request&, ResponseWriter& res) {
        (void)res.write("begun");
        (void)res.flush();
        throw StatusError(404);
      },
      "GET /");
  EXPECT_EQ(got.status, 200);
  EXPECT_FALSE(got.complete);
  EXPECT_NE(got.exception, nullptr);
}

TEST(Redirects, GoToAUriAndNowhereElse) {
  const Handler handler = [](Request& req, ResponseWriter& res) {
    if (req.path() == "/moved") return res.redirect("/new?a=b#c", 301);
    if (req.path() == "/odd") return res.redirect("/\\host/ü \r\nX: \"<%41");
    EXPECT_THROW(res.redirect("/", 304), std::invalid_argument);
    EXPECT_THROW(res.redirect("/", 200), std::invalid_argument);
  };
  const auto moved = call(handler, "GET /moved"), odd = call(handler, "GET /odd");
  EXPECT_EQ(moved.status, 301);
  EXPECT_EQ(moved.header("Location"), "/new?a=b#c");
  EXPECT_EQ(odd.status, 302);
  EXPECT_EQ(odd.header("Location"), "/%5Chost/%C3%BC%20%0D%0AX:%20%22%3C%41");
  EXPECT_EQ(call(handler, "GET /").status, 200);
}

TEST(Options, BeyondWhatIsPossibleAreRefused) {
  const auto answer = [](Request&, ResponseWriter&) {};
  EXPECT_THROW(http::Server(answer, {.headers_max = 257}), std::invalid_argument);
  EXPECT_THROW((void)call(answer, "GET /", {.server = {.headers_max = 257}}), std::invalid_argument);
  EXPECT_EQ(call(answer, "GET /", {.server = {.headers_max = 256}}).status, 200);
}

}  // namespace
}  // namespace tuza::http
