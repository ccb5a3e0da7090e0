// The middleware below http/middleware: what handlers and clients see of each.
#include <tuza/http/client.h>
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/basic_auth.h>
#include <tuza/http/middleware/body_limit.h>
#include <tuza/http/middleware/etag.h>
#include <tuza/http/middleware/rate_limit.h>
#include <tuza/http/middleware/recover.h>
#include <tuza/http/middleware/request_id.h>
#include <tuza/http/middleware/secure_headers.h>
#include <tuza/http/middleware/stack_size.h>
#include <tuza/http/middleware/timeout.h>
#include <tuza/http/router.h>
#include <tuza/http/server.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/wait_group.h>
#include <unistd.h>

#include <regex>
#include <set>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

Handler says(std::string body) {
  return [body = std::move(body)](Request&, ResponseWriter& res) { res.text(body); };
}

TEST(RecoverTest, ShowsTheExceptionInDevelopmentOnly) {
  const auto throws = [](Request&, ResponseWriter& res) {
    res.set_header("X-Kept", "1");
    res.set_header("ETag", "\"old\"");
    (void)res.write("half");
    throw std::runtime_error("<password>");
  };
  const Handler live = with(throws, recover());
  const Handler development = with(throws, recover({.development = true}));
  const CallResult text = call(live, "GET /");
  EXPECT_EQ(text.status, 500);
  EXPECT_EQ(text.body, "Internal Server Error\n");
  EXPECT_EQ(text.header("X-Kept"), "1");
  EXPECT_FALSE(text.header("ETag"));
  EXPECT_FALSE(text.closes);
  EXPECT_TRUE(text.exception != nullptr);  // it is reported as the server would

  const CallOptions html{.headers = {{"Accept", "text/html,*/*;q=0.1"}}};
  EXPECT_FALSE(call(live, "GET /", html).body.contains("password"));
  const CallResult page = call(development, "GET /", html);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.contains("&lt;password&gt;")) << page.body;
  EXPECT_TRUE(page.body.contains("std::runtime_error")) << page.body;

  const CallOptions json{.headers = {{"Accept", "application/json"}}};
  EXPECT_EQ(call(development, "GET /", json).body,
            "{\"error\":\"Internal Server Error\",\"status\":500,\"type\":\"std::runtime_error\","
            "\"what\":\"<password>\"}\n");
  EXPECT_EQ(call(live, "GET /", json).body, "{\"error\":\"Internal Server Error\",\"status\":500}\n");
}

TEST(RecoverTest, LetsAnswersAndLateExceptionsPass) {
  const Handler refuses = with([](Request&, ResponseWriter&) { throw StatusError(409, "taken"); },
                               recover({.development = true}));
  EXPECT_EQ(call(refuses, "GET /").status, 409);
  EXPECT_EQ(call(refuses, "GET /").body, "taken\n");
  const Handler late = with(
      [](Request&, ResponseWriter& res) {
        (void)res.write("half");
        (void)res.flush();
        throw std::runtime_error("late");
      },
      recover());
  const CallResult cut = call(late, "GET /");
  EXPECT_EQ(cut.status, 200);
  EXPECT_FALSE(cut.complete);
  const Handler odd = with([](Request&, ResponseWriter&) { throw 1; }, recover({.development = true}));
  EXPECT_EQ(call(odd, "GET /").body, "Internal Server Error\nint: \n");
}

// One frame and more for each character of a client's text.
TEST(StackSizeTest, HoldsTheRecursionOfARegularExpression) {
  run_with(2, [] {
    const Handler handler = with(
        [](Request& req, ResponseWriter& res) {
          static const std::regex pattern("(a|b)*c");
          res.text(std::regex_match(std::string(req.query()), pattern) ? "match" : "no match");
        },
        stack_size(8 << 20));
    std::string text(4000, 'a');
    text += 'c';
    EXPECT_EQ(call(handler, "GET /?" + text).body, "match");
  });
}

TEST(StackSizeTest, ExceptionsAndGoexitPass) {
  run_with(2, [] {
    EXPECT_EQ(
        call(with([](Request&, ResponseWriter&) { throw StatusError(409); }, stack_size(1 << 20)), "GET /")
            .status,
        409);
    const CallResult ended =
        call(with([](Request&, ResponseWriter&) { goexit(); }, stack_size(1 << 20)), "GET /");
    EXPECT_EQ(ended.status, 0) << "the handler's goexit() is that of the connection's goroutine";
    EXPECT_THROW((void)stack_size(0), std::invalid_argument);
  });
}

TEST(RequestIdTest, TakesOverWellFormedIdsOnly) {
  const Handler handler = with(
      [](Request& req, ResponseWriter& res) {
        const RequestId& id = *req.get(kRequestId);
        std::string text;
        text.append(id.traceparent()).append(" ").append(id.trace_id()).append(" ").append(id.span_id());
        res.text(text);
      },
      request_id());
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const CallResult taken =
      call(handler, "GET /",
           {.headers = {{"traceparent", "00-" + trace + "-00f067aa0ba902b7-01"}, {"X-Request-Id", "a-1_2"}}});
  EXPECT_EQ(taken.header("X-Request-Id"), "a-1_2");
  EXPECT_TRUE(taken.body.starts_with("00-" + trace + "-")) << taken.body;
  EXPECT_FALSE(taken.body.contains("00f067aa0ba902b7"));  // the span is this request's
  EXPECT_EQ(taken.body.substr(52, 3), "-01");
  const CallResult later =
      call(handler, "GET /", {.headers = {{"traceparent", "01-" + trace + "-00f067aa0ba902b7-00-more"}}});
  EXPECT_EQ(later.header("X-Request-Id"), trace);

  std::set<std::string> ids;
  for (const std::string& bad : std::vector<std::string>{
           "", "00", "00-" + trace + "-00f067aa0ba902b7-01-more", "ff-" + trace + "-00f067aa0ba902b7-01",
           "00-4BF92F3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-" + trace + "-0000000000000000-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-" + trace + "-00f067aa0ba902b7-0g",
           "00-" + trace + "-00f067aa0ba902b7-01x"}) {
    const CallResult made =
        call(handler, "GET /", {.headers = {{"traceparent", bad}, {"X-Request-Id", "a b"}}});
    const std::string id(made.header("X-Request-Id").value_or(""));
    EXPECT_EQ(id.size(), 32u) << bad;
    EXPECT_NE(id, trace) << bad;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 9u);
  const auto id_of = [&](std::string sent) {
    return std::string(
        *call(handler, "GET /", {.headers = {{"X-Request-Id", std::move(sent)}}}).header("X-Request-Id"));
  };
  EXPECT_EQ(id_of(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(id_of(std::string(65, 'x')).size(), 32u);
  EXPECT_THROW((void)request_id({.header = "not a name"})(says("")), std::invalid_argument);
}

TEST(RequestIdTest, CanDistrustItsClients) {
  const Handler handler = with(says("x"), request_id({.header = "Request-Id", .trust_client = false}));
  const CallResult made = call(handler, "GET /", {.headers = {{"Request-Id", "mine"}}});
  EXPECT_EQ(made.header("Request-Id").value_or("").size(), 32u);
}

TEST(SecureHeadersTest, CanBeReplacedAndKeepWhatOthersSet) {
  const Handler handler = with(
      [](Request&, ResponseWriter& res) {
        res.set_header("X-Frame-Options", "SAMEORIGIN");
        res.text("x");
      },
      secure_headers({.content_security_policy = "default-src 'self'"}));
  const CallResult plain = call(handler, "GET /");
  EXPECT_EQ(plain.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(plain.header("X-Frame-Options"), "SAMEORIGIN");
  EXPECT_EQ(plain.header("Content-Security-Policy"), "default-src 'self'");
  EXPECT_FALSE(plain.header("Strict-Transport-Security"));
  EXPECT_FALSE(plain.header("Permissions-Policy"));
  const CallResult tls = call(handler, "GET /", {.tls = net::TlsInfo{}});
  EXPECT_EQ(tls.header("Strict-Transport-Security"), "max-age=15552000");
  const Handler two =
      with(says("x"), request_id(), secure_headers({.hsts_preload = true, .behind_tls = true}));
  const CallResult both = call(two, "GET /");
  EXPECT_TRUE(both.header("X-Request-Id") && both.header("X-Frame-Options"));
  EXPECT_EQ(both.header("Strict-Transport-Security"), "max-age=15552000; preload");
  EXPECT_THROW((void)secure_headers({.referrer_policy = "a\r\nb: c"})(says("")), std::invalid_argument);
}

TEST(BasicAuthTest, AdmitsListedUsers) {
  const Handler handler = with([](Request& req, ResponseWriter& res) { res.text(*req.get(kBasicUser)); },
                               basic_auth({.realm = "a \"b\\", .users = {{"ada", "s:cret"}, {"bob", ""}}}));
  const CallResult refused = call(handler, "GET /");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("WWW-Authenticate"), R"(Basic realm="a \"b\\", charset="UTF-8")");
  const auto status = [&](std::string field) {
    return call(handler, "GET /", {.headers = {{"Authorization", std::move(field)}}}).status;
  };
  EXPECT_EQ(status("Basic YWRhOnM6Y3JldA=="), 200);  // ada:s:cret
  EXPECT_EQ(status("bAsIc YWRhOnM6Y3JldA=="), 200);
  EXPECT_EQ(status("Basic Ym9iOg=="), 200);  // bob:
  const std::string good = "Basic YWRhOnM6Y3JldA==";
  const HeaderFields twice{{"Authorization", good}, {"Authorization", good}};
  EXPECT_EQ(call(handler, "GET /", {.headers = twice}).status, 401);
  EXPECT_EQ(status("Basic YWRhOg=="), 401);          // ada: with bob's password
  EXPECT_EQ(status("Basic YWRhOnM6Y3JldA"), 401);    // no padding
  EXPECT_EQ(status("Basic YWRhOnM6Y3JldB=="), 401);  // bits behind the end
  EXPECT_EQ(status("Basic YWRh"), 401);              // no colon
  EXPECT_EQ(status("Basic "), 401);
  EXPECT_EQ(status("Basic ===="), 401);
  EXPECT_EQ(status("Bearer YWRhOnM6Y3JldA=="), 401);
  EXPECT_THROW((void)basic_auth({})(says("")), std::invalid_argument);
  EXPECT_THROW((void)basic_auth({.realm = "\n", .users = {{"a", "b"}}})(says("")), std::invalid_argument);
}

CallOptions from(const char* address) {
  return {.peer = net::Endpoint(net::IpAddress::parse(address).value(), 1)};
}

TEST(RateLimitTest, CountsAddressesAndNetworks) {
  const Handler handler = with(says("x"), rate_limit({.per_second = 1e-4, .burst = 2}));
  EXPECT_EQ(call(handler, "GET /", from("192.0.2.1")).status, 200);
  EXPECT_EQ(call(handler, "GET /", from("::ffff:192.0.2.1")).status, 200);  // the same address
  const CallResult refused = call(handler, "GET /", from("192.0.2.1"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_GT(std::stoi(std::string(refused.header("Retry-After").value_or("0"))), 1);
  EXPECT_EQ(call(handler, "GET /", from("192.0.2.2")).status, 200);
  EXPECT_EQ(call(handler, "GET /", from("2001:db8::1")).status, 200);
  EXPECT_EQ(call(handler, "GET /", from("2001:db8::ffff:2")).status, 200);
  EXPECT_EQ(call(handler, "GET /", from("2001:db8::3")).status, 429);  // the same /64
  EXPECT_EQ(call(handler, "GET /", from("2001:db8:0:1::3")).status, 200);
}

TEST(RateLimitTest, WhatComesOverAUnixSocketSharesABucket) {
  run_with(2, [] {
    const std::string address = "unix:/tmp/tuza-rate-limit-test." + std::to_string(::getpid());
    http::Server server(with(says("x"), rate_limit({.per_second = 1e-4, .burst = 2})));
    ASSERT_TRUE(server.listen(address));
    WaitGroup serving;
    serving.go([&] { (void)server.serve(); });
    Client client({.address = address});
    for (const int status : {200, 200, 429}) {
      const Result<ClientResponse> res = client.get({}, "http://localhost/");
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->status(), status);
    }
    client.close_idle();
    (void)server.shutdown();
    serving.wait();
  });
}

TEST(RateLimitTest, RemembersALimitedNumberOfKeys) {
  const Handler handler =
      with(says("x"), rate_limit({.per_second = 1e-4, .burst = 1, .keys_max = 2, .key = [](Request& req) {
                                    return std::string(req.header("K").value_or(""));
                                  }}));
  const auto status = [&](std::string key) {
    return call(handler, "GET /", {.headers = {{"K", std::move(key)}}}).status;
  };
  EXPECT_EQ(status("a"), 200);
  EXPECT_EQ(status("b"), 200);
  EXPECT_EQ(status("a"), 429);
  EXPECT_EQ(status("c"), 200);  // in the place of b, which asked before a
  EXPECT_EQ(status("a"), 429);
  EXPECT_EQ(status("b"), 200);
  EXPECT_EQ(status(""), 200);
  EXPECT_EQ(status(""), 200);
  EXPECT_EQ(status(std::string(1000, 'k') + "1"), 200);
  EXPECT_EQ(status(std::string(1000, 'k') + "2"), 200) << "another, although only digests are remembered";
  EXPECT_EQ(status(std::string(1000, 'k') + "1"), 429);
  EXPECT_THROW((void)rate_limit({})(says("")), std::invalid_argument);
}

TEST(BodyLimitTest, TheInnermostCounts) {
  Router router;
  router.use(body_limit(10));
  const auto read = [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.text(*body);
  };
  router.handle("POST /small", read);
  router.handle("POST /ignored", says("not read"));
  RouteGroup large = router.group("/large");
  large.use(body_limit(20));
  large.handle("POST /", read);
  for (const bool chunked : {false, true}) {
    const auto status = [&](const char* request, std::size_t bytes) {
      return call(router, request, {.body = std::string(bytes, 'x'), .chunked = chunked}).status;
    };
    EXPECT_EQ(status("POST /small", 10), 200);
    EXPECT_EQ(status("POST /small", 11), 413);
    EXPECT_EQ(status("POST /large/", 20), 200);
    EXPECT_EQ(status("POST /large/", 21), 413);
    EXPECT_EQ(status("POST /ignored", 11), 200);
  }
}

// The server's limit is for routes that have none of their own.
TEST(BodyLimitTest, MayBeAboveThatOfTheServer) {
  Router router;
  const auto read = [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.text(std::to_string(body->size()));
  };
  router.handle("POST /small", read);
  RouteGroup large = router.group("/large");
  large.use(body_limit(200));
  large.handle("POST /", read);
  RouteGroup less = large.group("/less");
  less.use(body_limit(150));
  less.handle("PUT /", read);
  for (const bool chunked : {false, true}) {
    const auto status = [&](const char* request, std::size_t bytes) {
      return call(router, request,
                  {.body = std::string(bytes, 'x'), .chunked = chunked, .server = {.body_bytes_max = 100}})
          .status;
    };
    EXPECT_EQ(status("POST /small", 100), 200);
    EXPECT_EQ(status("POST /small", 101), 413);
    EXPECT_EQ(status("POST /large/", 200), 200);
    EXPECT_EQ(status("POST /large/", 201), 413);
    EXPECT_EQ(status("PUT /large/less/", 150), 200);
    EXPECT_EQ(status("PUT /large/less/", 151), 413);
    EXPECT_EQ(status("POST /none", 101), 404);
  }
}

TEST(EtagTest, SavesTheTransferOfAKnownBody) {
  const Handler handler = with(says("hello"), etag());
  const CallResult first = call(handler, "GET /");
  EXPECT_EQ(first.status, 200);
  const std::string tag(first.header("ETag").value_or(""));
  EXPECT_EQ(tag.size(), 34u);
  for (const std::string& known : {tag, "\"other\", W/" + tag, std::string("*")}) {
    const CallResult same = call(handler, "GET /", {.headers = {{"If-None-Match", known}}});
    EXPECT_EQ(same.status, 304) << known;
    EXPECT_EQ(same.body, "");
    EXPECT_EQ(same.header("ETag"), tag);
    EXPECT_FALSE(same.header("Content-Type") || same.header("Content-Length"));
  }
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"If-None-Match", "\"other\""}}}).body, "hello");
  EXPECT_NE(call(with(says("hellO"), etag()), "GET /").header("ETag"), tag);
  EXPECT_FALSE(call(handler, "POST /").header("ETag"));
}

TEST(EtagTest, LeavesOtherResponsesAlone) {
  const Handler handler = with(
      [](Request& req, ResponseWriter& res) {
        if (req.query() == "own") res.set_header("ETag", "\"own\"");
        if (req.query() == "secret") res.set_header("Cache-Control", "private, no-store");
        if (req.query() == "hidden") {
          res.set_header("Cache-Control", "private");
          res.add_header("Cache-Control", "No-Store");
        }
        if (req.query() == "created") res.status(201);
        if (req.query() == "streamed") {
          (void)res.write("a");
          (void)res.flush();
        }
        (void)res.write("b");
      },
      etag());
  EXPECT_TRUE(call(handler, "GET /").header("ETag"));
  EXPECT_EQ(call(handler, "GET /?own").header("ETag"), "\"own\"");
  for (const char* request : {"GET /?secret", "GET /?hidden", "GET /?created", "GET /?streamed"}) {
    EXPECT_FALSE(call(handler, request).header("ETag")) << request;
  }
  EXPECT_EQ(call(handler, "GET /?streamed").body, "ab");
}

TEST(TimeoutTest, AnswersForALateHandler) {
  run_with(1, [] {
    const Handler handler = with(
        [](Request& req, ResponseWriter& res) {
          if (req.query() == "quick") return res.text("quick");
          const Context context = req.context();
          if (req.query() == "begun") {
            (void)res.write("a");
            (void)res.flush();
          }
          context.wait();
          EXPECT_TRUE(context.cause().timeout());
          if (req.query() == "answers") res.text("late");
        },
        timeout(std::chrono::milliseconds(5)));
    EXPECT_EQ(call(handler, "GET /?quick").body, "quick");
    EXPECT_EQ(call(handler, "GET /").status, 503);
    EXPECT_EQ(call(handler, "GET /?begun").body, "a");
    EXPECT_EQ(call(handler, "GET /?answers").body, "late");
  });
  run_with(1, [] {
    const Handler inner = with(
        [](Request& req, ResponseWriter& res) {
          req.until_shutdown().wait();
          EXPECT_TRUE(req.until_shutdown().cause().timeout());
          res.text("in time for the shutdown");
        },
        timeout(std::chrono::milliseconds(5)));
    const Handler outer = [&](Request& req, ResponseWriter& res) {
      const Context& ours = req.until_shutdown();
      inner(req, res);
      EXPECT_FALSE(ours.done()) << "the limit is for the handlers behind it";
      EXPECT_FALSE(req.until_shutdown().done());
    };
    EXPECT_EQ(call(outer, "GET /").body, "in time for the shutdown");
  });
  EXPECT_THROW((void)timeout(std::chrono::seconds(0)), std::invalid_argument);
}

struct Logged {
  std::string line;
  Handler handler(AccessLogFormat format, Handler inner) {
    return with(std::move(inner), request_id(),
                access_log({.format = format, .write = [this](std::string_view text) { line = text; }}));
  }
};

TEST(AccessLogTest, NothingFromOutsideBreaksALine) {
  Logged log;
  const CallOptions hostile{
      .headers = {{"Referer", "a\"b\\c"}, {"User-Agent", "x\u202ey\u2028z\x85\u009b \xc3\xa9"}}};
  const Handler combined = log.handler(AccessLogFormat::kCombined, says("12345"));
  (void)call(combined, "GET /i?a=%22", hostile);
  EXPECT_TRUE(log.line.starts_with("192.0.2.1 - - [")) << log.line;
  EXPECT_TRUE(
      log.line.ends_with("] \"GET /i?a=%22 HTTP/1.1\" 200 5 \"a\\\"b\\\\c\" "
                         "\"x\\xe2\\x80\\xaey\\xe2\\x80\\xa8z\\x85\\xc2\\x9b \u00e9\"\n"))
      << log.line;
  const Handler json = log.handler(AccessLogFormat::kJson, says("12345"));
  (void)call(json, "GET /i", hostile);
  EXPECT_TRUE(log.line.contains(R"("referer":"a\"b\\c","user_agent":"x\u202ey\u2028z)")) << log.line;
  EXPECT_TRUE(log.line.contains("\xef\xbf\xbd\\u009b \u00e9\"}\n")) << log.line;
  EXPECT_EQ(std::ranges::count(log.line, '\n'), 1);
}

TEST(AccessLogTest, KnowsWhatOthersFound) {
  Logged log;
  Router router;
  router.handle("GET /items/{id}", says("item"));
  router.handle("GET /throws", [](Request&, ResponseWriter&) { throw std::runtime_error("x"); });
  const Handler handler =
      log.handler(AccessLogFormat::kJson,
                  with(std::move(router), basic_auth({.check = [](auto, auto) { return true; }})));
  const CallOptions ada{.headers = {{"Authorization", "Basic YWRhOg=="}, {"X-Request-Id", "abc"}}};
  (void)call(handler, "GET /items/7", ada);
  EXPECT_TRUE(log.line.contains(R"("target":"/items/7","pattern":"GET /items/{id}","status":200,"bytes":4,)"))
      << log.line;
  EXPECT_TRUE(log.line.contains(R"("request_id":"abc","user":"ada"})")) << log.line;
  (void)call(handler, "GET /throws", ada);
  EXPECT_TRUE(log.line.contains(R"("status":500)")) << log.line;
  (void)call(handler, "GET /nothing", ada);
  EXPECT_TRUE(log.line.contains(R"("target":"/nothing","status":404)")) << log.line;
  const Handler common =
      with(says(""), access_log({.format = AccessLogFormat::kCommon,
                                 .write = [&](std::string_view text) { log.line = text; }}));
  (void)call(common, "HEAD /", from("2001:db8::1"));
  EXPECT_TRUE(log.line.starts_with("2001:db8::1 - - [")) << log.line;
  EXPECT_TRUE(log.line.ends_with("] \"HEAD / HTTP/1.1\" 200 -\n")) << log.line;
}

}  // namespace
}  // namespace tuza::http::testing
