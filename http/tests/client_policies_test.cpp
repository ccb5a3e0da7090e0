// The smaller middleware of the client: logs, traces, rates.
#include <gtest/gtest.h>
#include <tuza/http/client/middleware/client_log.h>
#include <tuza/http/client/middleware/client_rate_limit.h>
#include <tuza/http/client/middleware/client_trace.h>
#include <tuza/http/client/middleware/retry.h>
#include <tuza/http/middleware/request_id.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/fake_clock.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientPoliciesTest : public WithProcs {};
TUZA_WITH_PROCS(ClientPoliciesTest);

void answer_path(Request& req, ResponseWriter& res) {
  if (req.path() == "/moved") return res.redirect("/there?code=1");
  if (req.path() == "/busy") return res.error(503);
  res.text("ok");
}

// -- client_log()

TEST_P(ClientPoliciesTest, LogsEachRequestWithoutTheSecretsOfItsQuery) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    FakeUpstreams upstreams;
    FakeUpstream& upstream = upstreams.add("https://a", answer_path);
    std::string lines;
    Client client(upstreams.client_options(
        {.middleware = {client_log(
             {.shown = {"sort", "page"}, .write = [&](std::string_view line) { lines += line; }})}}));
    const auto line_of = [&](std::string_view target) {
      lines.clear();
      (void)client.get({}, "https://a" + std::string(target));
      return lines;
    };
    EXPECT_EQ(line_of("/"), "GET https://a/ 200 0us\n");
    EXPECT_EQ(line_of("/items?token=s3cret&sort=name&page=2&s3cret&&x=&Sort=s3cret"),
              "GET https://a/items?token=***&sort=name&page=2&***&&x=***&Sort=*** 200 0us\n");
    EXPECT_EQ(line_of("/moved?key=1"),
              "GET https://a/moved?key=*** 302 0us\nGET https://a/there?code=*** 200 0us\n");
    upstream.delay(1'500us);
    EXPECT_EQ(line_of("/busy?"), "GET https://a/busy? 503 1500us\n");
    client.close_idle();
    upstream.refuse_dials(1, std::make_error_code(std::errc::connection_refused));
    const std::string refused = line_of("/x");
    EXPECT_TRUE(refused.starts_with("GET https://a/x - 0us \"dial ")) << refused;
    EXPECT_TRUE(refused.ends_with(": Connection refused\"\n")) << refused;
    const std::string longest = line_of("/" + std::string(3'000, 'x'));
    EXPECT_LT(longest.size(), 2'100u);
    EXPECT_TRUE(longest.ends_with(" 200 1500us\n"));
  });
}

TEST_P(ClientPoliciesTest, LogsLinesOfJsonThatNobodyCanEnd) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    std::string line;
    bool fails = true;
    const auto log = [&](ClientLogFormat format) {
      return client_log({.format = format, .write = [&](std::string_view text) { line = text; }});
    };
    const ClientMiddleware hostile = [&](const Context& ctx, ClientRequest& request,
                                         const ClientNext& next) -> Result<ClientResponse> {
      if (!fails) return next(ctx, request);
      return std::unexpected(Error(Errc::kBadMessage, "read", "\"a\"\n\x1b[31m"));
    };
    FakeUpstreams upstreams;
    upstreams.add("http://a", answer_path);
    Client json(upstreams.client_options({.middleware = {log(ClientLogFormat::kJson), hostile}}));
    (void)json.get({}, "http://a/");
    EXPECT_TRUE(line.starts_with(R"({"time":"20)")) << line;
    EXPECT_TRUE(line.contains(R"("method":"GET","url":"http://a/","error":"read \"a\")")) << line;
    EXPECT_TRUE(line.ends_with(",\"duration_us\":0}\n")) << line;
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_FALSE(line.contains('\x1b'));
    Client text(upstreams.client_options({.middleware = {log(ClientLogFormat::kText), hostile}}));
    (void)text.get({}, "http://a/");
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_FALSE(line.contains('\x1b'));
    EXPECT_FALSE(line.contains("\"a\"")) << line;
    fails = false;
    (void)json.get({}, "http://a/busy?x=1");
    EXPECT_TRUE(line.contains(R"("url":"http://a/busy?x=***","status":503,"duration_us":0})")) << line;
  });
}

TEST_P(ClientPoliciesTest, LogsCallsOutsideOfRetryAndTriesInside) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    FakeUpstreams upstreams;
    upstreams.add("http://a", answer_path);
    int calls = 0, tries = 0;
    Client client(upstreams.client_options(
        {.middleware = {client_log({.write = [&](std::string_view) { ++calls; }}), retry(),
                        client_log({.write = [&](std::string_view) { ++tries; }})}}));
    EXPECT_EQ(client.get({}, "http://a/busy")->status(), 503);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(tries, 3);
  });
}

TEST_P(ClientPoliciesTest, LogsToTheRuntimesLogUnlessToldOtherwise) {
  static std::vector<std::string> lines;
  lines.clear();
  set_log_sink([](LogLevel level, std::string_view line) {
    if (level == LogLevel::kInfo) lines.emplace_back(line);
  });
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    FakeUpstreams upstreams;
    upstreams.add("http://a", answer_path);
    Client client(upstreams.client_options({.middleware = {client_log()}}));
    EXPECT_EQ(client.get({}, "http://a/x?y=1")->status(), 200);
  });
  set_log_sink(nullptr);
  EXPECT_EQ(lines, std::vector<std::string>{"GET http://a/x?y=*** 200 0us"});
}

// -- client_rate_limit()

TEST_P(ClientPoliciesTest, WaitsForItsTurn) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    FakeUpstreams upstreams;
    FakeUpstream& a = upstreams.add("http://a", answer_path);
    upstreams.add("http://b", answer_path);
    Client client(
        upstreams.client_options({.middleware = {client_rate_limit({.per_second = 2, .burst = 3})}}));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get({}, "http://a/")->status(), 200);
    EXPECT_EQ(clock.elapsed(), 0s);
    EXPECT_EQ(client.get({}, "http://b/")->status(), 200);
    EXPECT_EQ(clock.elapsed(), 500ms);
    EXPECT_EQ(client.get({}, "http://a/moved")->status(), 200);
    EXPECT_EQ(clock.elapsed(), 1'500ms) << "a redirect is a request";
    const std::size_t before = a.requests().size();
    const auto limited = with_timeout({}, 400ms);
    EXPECT_TRUE(client.get(limited.ctx(), "http://a/").error().timeout());
    EXPECT_EQ(clock.elapsed(), 1'500ms) << "at once";
    EXPECT_EQ(a.requests().size(), before);
  });
}

TEST_P(ClientPoliciesTest, LimitsOriginsEachForItself) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    FakeUpstreams upstreams;
    for (const char* origin : {"http://a", "http://b", "http://c"}) upstreams.add(origin, answer_path);
    Client client(upstreams.client_options(
        {.middleware = {client_rate_limit({.per_second = 1, .per_origin = true, .origins_max = 2})}}));
    EXPECT_EQ(client.get({}, "http://a/")->status(), 200);
    EXPECT_EQ(client.get({}, "http://b/")->status(), 200);
    EXPECT_EQ(clock.elapsed(), 0s);
    EXPECT_EQ(client.get({}, "http://a/")->status(), 200);
    EXPECT_EQ(clock.elapsed(), 1s);
    EXPECT_EQ(client.get({}, "http://c/")->status(), 200) << "in place of b";
    EXPECT_EQ(client.get({}, "http://b/")->status(), 200) << "forgotten, in place of a";
    EXPECT_EQ(clock.elapsed(), 1s);
    for (const ClientRateLimitOptions& wrong :
         {ClientRateLimitOptions{}, ClientRateLimitOptions{.per_second = 1, .burst = 0},
          ClientRateLimitOptions{.per_second = 1, .origins_max = 0}})
      EXPECT_THROW((void)client_rate_limit(wrong), std::invalid_argument);
  });
}

// -- client_trace()

TEST_P(ClientPoliciesTest, GoesOnWithTheTraceOfTheRequestThatIsServed) {
  run_with(GetParam(), [] {
    FakeUpstreams upstreams;
    FakeUpstream& inner = upstreams.add("http://inner", answer_path);
    Client client(upstreams.client_options({.middleware = {client_trace()}}));
    Router router;
    router.use(request_id({.in_context = true}));
    router.handle("/", [&](Request& req, ResponseWriter& res) {
      const auto limited = with_timeout(req.context(), 1h);
      EXPECT_EQ(client.get(limited.ctx(), "http://inner/moved")->status(), 200);
      res.text(req.get(kRequestId)->traceparent());
    });
    const std::string trace = "0123456789abcdef0123456789abcdef";
    Router plain;
    plain.use(request_id());
    plain.handle("/", [&](Request& req, ResponseWriter& res) {
      EXPECT_EQ(client.get(req.context(), "http://inner/")->status(), 200);
      res.text("ok");
    });
    upstreams.add("http://outer", std::move(router));
    upstreams.add("http://plain", std::move(plain));
    ClientRequest request(Method::kGet, "http://outer/");
    request.set_header("traceparent", "00-" + trace + "-00f067aa0ba902b7-01");
    Result<ClientResponse> res = client.send({}, request);
    ASSERT_TRUE(res) << res.error().message();
    const std::string mine = res->body().value();
    EXPECT_TRUE(mine.starts_with("00-" + trace + "-")) << mine;
    EXPECT_FALSE(mine.contains("00f067aa0ba902b7")) << mine;
    ASSERT_EQ(inner.requests().size(), 2u);
    for (const SeenRequest& seen : inner.requests()) EXPECT_EQ(seen.header("traceparent"), mine);
    EXPECT_EQ(client.get({}, "http://plain/")->body(), "ok");
    EXPECT_EQ(inner.requests().back().header("traceparent"), std::nullopt);
  });
}

TEST_P(ClientPoliciesTest, LeavesATraceparentOfTheCallersOwn) {
  run_with(GetParam(), [] {
    FakeUpstreams upstreams;
    FakeUpstream& upstream = upstreams.add("http://a", answer_path);
    Client client(upstreams.client_options({.middleware = {client_trace()}}));
    const Context ctx = with_value(Context(), kTraceparent, std::string("00-from-context-01"));
    EXPECT_EQ(client.get(ctx, "http://a/")->status(), 200);
    EXPECT_EQ(upstream.requests().back().header("traceparent"), "00-from-context-01");
    ClientRequest request(Method::kGet, "http://a/");
    request.set_header("Traceparent", "00-mine-01");
    EXPECT_EQ(client.send(ctx, request)->status(), 200);
    EXPECT_EQ(upstream.requests().back().header("traceparent"), "00-mine-01");
  });
}

// Once over sockets, all together.
TEST_P(ClientPoliciesTest, WorkOverSockets) {
  run_with(GetParam(), [] {
    AskedFor traces;
    TestServer server([&](Request& req, ResponseWriter& res) {
      traces.add(std::string(req.header("traceparent").value_or("-")));
      res.text("ok");
    });
    std::string line;
    Client client(
        {.middleware = {client_log({.write = [&](std::string_view text) { line = text; }}),
                        client_rate_limit({.per_second = 1'000'000, .burst = 10}), client_trace()}});
    const Context ctx = with_value(Context(), kTraceparent, std::string("00-1"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get(ctx, url_of(server, "/?a=b"))->body(), "ok");
    EXPECT_EQ(traces.take(), std::vector<std::string>(3, "00-1"));
    EXPECT_TRUE(line.starts_with("GET http://" + server.address() + "/?a=*** 200 ")) << line;
  });
}

}  // namespace
}  // namespace tuza::http::testing
