// ClientOptions::stall_timeout: a server that stops within a body, by a fake clock over a network in memory.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::FakeClock;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientStallTest : public WithProcs {};
TUZA_WITH_PROCS(ClientStallTest);

constexpr std::size_t kLongBody = 4 << 20;

ServerOptions large_bodies() { return {.body_bytes_max = 2 * kLongBody}; }

void stop(const Request& req) { (void)sleep_for(req.context(), 24h); }

// The request's body, a quarter of it each 200 s; or half of it, and then nothing.
void read_slowly(Request& req, bool whole) {
  std::vector<std::byte> quarter(kLongBody / 4);
  for (int i = 0; i < (whole ? 4 : 2); ++i) {
    sleep_for(200s);
    for (std::span<std::byte> rest(quarter); !rest.empty();) {
      const Result<std::size_t> n = req.read_body(rest);
      if (!n || *n == 0) return;
      rest = rest.subspan(*n);
    }
  }
  if (!whole) stop(req);
}

// Three pieces, 200 s before each, and then the end, or nothing.
void write_slowly(Request& req, ResponseWriter& res, bool whole) {
  if (!res.flush()) return;
  for (int i = 0; i < 3; ++i) {
    sleep_for(200s);
    if (!res.write("piece") || !res.flush()) return;
  }
  if (!whole) stop(req);
}

void slow_site(Request& req, ResponseWriter& res) {
  const bool whole = req.query() == "whole";
  if (req.path() == "/down") return write_slowly(req, res, whole);
  read_slowly(req, whole);
  res.text("ok");
}

ClientRequest upload(std::string_view target, bool as_text, std::size_t& left) {
  ClientRequest request(Method::kPut, "http://site" + std::string(target));
  left = kLongBody;
  if (as_text) {
    request.set_body(std::string(kLongBody, 'x'));
  } else {
    request.set_body_source(
        [&left](std::span<std::byte> into) -> Result<std::size_t> {
          const std::size_t n = std::min(left, into.size());
          std::ranges::fill(into.first(n), std::byte{'x'});
          left -= n;
          return n;
        },
        kLongBody);
  }
  return request;
}

Result<std::string> body_of(Result<ClientResponse> answer) {
  return answer ? answer->body() : std::unexpected(answer.error());
}

TEST_P(ClientStallTest, AServerMayBeSlowAndMayNotStop) {
  run_with(GetParam(), [] {
    FakeClock clock;
    FakeUpstreams upstreams({.server = large_bodies()});
    upstreams.add("http://site", slow_site);
    Client client(upstreams.client_options({.stall_timeout = 300s}));
    const Context ctx;
    auto took = [&clock, before = clock.elapsed()]() mutable {
      return clock.elapsed() - std::exchange(before, clock.elapsed());
    };
    EXPECT_EQ(body_of(client.get(ctx, "http://site/down?whole")), "piecepiecepiece");
    EXPECT_EQ(took(), 600s);
    EXPECT_TRUE(body_of(client.get(ctx, "http://site/down?half")).error().timeout());
    EXPECT_EQ(took(), 900s);
    std::size_t left = 0;
    for (const bool as_text : {false, true}) {
      ClientRequest whole = upload("/up?whole", as_text, left), half = upload("/up?half", as_text, left);
      EXPECT_EQ(body_of(client.send(ctx, whole)), "ok");
      EXPECT_EQ(took(), 800s);
      left = kLongBody;
      EXPECT_TRUE(client.send(ctx, half).error().timeout());
      EXPECT_EQ(took(), 700s) << "400 s, and the wait after them";
    }
    EXPECT_EQ(upstreams.close(), "");
  });
}

TEST_P(ClientStallTest, TheLimitOfEverythingHoldsMeanwhile) {
  run_with(GetParam(), [] {
    FakeClock clock;
    FakeUpstreams upstreams({.server = large_bodies()});
    upstreams.add("http://site", slow_site);
    Client client(upstreams.client_options({.timeout = 250s, .stall_timeout = 300s}));
    Client patient(upstreams.client_options({.stall_timeout = 0s}));
    std::size_t left = 0;
    for (const bool as_text : {false, true}) {
      ClientRequest request = upload("/up?whole", as_text, left);
      const auto before = clock.elapsed();
      EXPECT_TRUE(client.send(Context(), request).error().timeout());
      EXPECT_EQ(clock.elapsed() - before, 250s);
    }
    const auto before = clock.elapsed();
    EXPECT_TRUE(body_of(client.get(Context(), "http://site/down?whole")).error().timeout());
    EXPECT_EQ(clock.elapsed() - before, 250s);
    EXPECT_EQ(body_of(patient.get(Context(), "http://site/down?half")), "piecepiecepiece") << "after a day";
    EXPECT_EQ(upstreams.close(), "");
  });
}

// A request that fits into one write is not sent beside the wait for its answer.
TEST_P(ClientStallTest, TheSoonerLimitHoldsForASmallBody) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Server server([](Request& req, ResponseWriter&) { stop(req); }, {.buffer_bytes = 4 << 10});
    const auto dial = [&server](const Context&, const Url&) { return server.dial(); };
    const auto took = [&](std::chrono::milliseconds timeout, std::chrono::milliseconds stall_timeout) {
      Client client({.dial = dial, .timeout = timeout, .stall_timeout = stall_timeout});
      const auto before = clock.elapsed();
      const auto answer = client.post(Context(), "http://site/", "a/b", std::string(60'000, 'x'));
      EXPECT_TRUE(answer.error().timeout());
      return clock.elapsed() - before;
    };
    EXPECT_EQ(took(50s, 20s), 20s);
    EXPECT_EQ(took(20s, 50s), 20s);
    EXPECT_EQ(took(20s, 0s), 20s);
    EXPECT_EQ(took(0s, 20s), 20s);
    EXPECT_EQ(server.close(), "");
  });
}

TEST_P(ClientStallTest, AProxySays504ForAnUploadAndBreaksAnAnswerOff) {
  run_with(GetParam(), [] {
    FakeClock clock;
    FakeUpstreams upstreams({.server = large_bodies()});
    upstreams.add("http://site", slow_site);
    ServerOptions options = large_bodies();
    options.body_timeout = 10s;  // which an upstream's slowness does not count for
    {
      const ReverseProxy proxy(
          {.upstreams = {"http://site"}, .client = upstreams.client_options({.stall_timeout = 250s})});
      Server front(proxy, {.server = options});
      std::size_t left = 0;
      for (const bool whole : {true, false}) {
        ClientRequest request = upload(whole ? "/up?whole" : "/up?half", false, left);
        request.set_url(Url::parse(front.url(whole ? "/up?whole" : "/up?half")).value());
        const Result<ClientResponse> answer = front.client().send(Context(), request);
        EXPECT_EQ(answer->status(), whole ? 200 : 504);
      }
      Result<ClientResponse> answer = front.client().get(Context(), front.url("/down?half"));
      EXPECT_EQ(answer->status(), 200);
      EXPECT_TRUE(answer->body().error().is(Errc::kEndOfStream));
      EXPECT_EQ(proxy.stats().front().failures, 2u);
      EXPECT_EQ(front.server().stats().body_timeouts, 0u);
      EXPECT_EQ(front.close(), "");
    }
    EXPECT_EQ(upstreams.close(), "");
  });
}

}  // namespace
}  // namespace tuza::http::testing
