// client_metrics(): what /metrics shows of the requests that go out.
#include <tuza/framework/client_metrics.h>
#include <tuza/http/client/middleware/retry.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/fake_clock.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;

void answer(http::Request& req, http::ResponseWriter& res) {
  if (req.path() == "/moved") return res.redirect("/");
  if (req.path() == "/busy") return res.error(503);
  res.text("ok");
}

TEST(ClientMetrics, CountAndTimeRequestsByHost) {
  run_with(2, [] {
    testing::FakeClock clock;
    Metrics metrics;
    http::testing::FakeUpstreams upstreams;
    auto& a = upstreams.add("http://a:8080", answer);
    auto& b = upstreams.add("https://b", answer);
    http::Client client(upstreams.client_options({.middleware = {client_metrics(metrics)}}));
    const Context ctx;
    EXPECT_EQ(client.get(ctx, "http://a:8080/moved")->status(), 200);
    EXPECT_EQ(client.get(ctx, "http://a:8080/busy")->status(), 503);
    a.delay(20ms);
    EXPECT_EQ(client.get(ctx, "http://a:8080/")->status(), 200);
    b.refuse_dials();
    EXPECT_FALSE(client.get(ctx, "https://b/"));
    const std::string text = metrics.prometheus_text();
    for (const char* line : {
             "# HELP http_client_requests_total Requests by host and status class; none: no response, or "
             "nothing was sent\n",
             "http_client_requests_total{host=\"a:8080\",code=\"2xx\"} 2\n",
             "http_client_requests_total{host=\"a:8080\",code=\"3xx\"} 1\n",
             "http_client_requests_total{host=\"a:8080\",code=\"5xx\"} 1\n",
             "http_client_requests_total{host=\"a:8080\",code=\"none\"} 0\n",
             "http_client_requests_total{host=\"b\",code=\"none\"} 1\n",
             "http_client_request_duration_seconds_bucket{host=\"a:8080\",le=\"0.001\"} 3\n",
             "http_client_request_duration_seconds_bucket{host=\"a:8080\",le=\"0.01\"} 3\n",
             "http_client_request_duration_seconds_bucket{host=\"a:8080\",le=\"0.025\"} 4\n",
             "http_client_request_duration_seconds_sum{host=\"a:8080\"} 0.02\n",
             "http_client_request_duration_seconds_count{host=\"b\"} 1\n",
         })
      EXPECT_TRUE(text.contains(line)) << line << text.substr(text.find("# HELP http_client"), 4'000);
  });
}

TEST(ClientMetrics, CountTriesInsideOfRetryAndCallsOutside) {
  run_with(2, [] {
    testing::FakeClock clock;
    Metrics calls, tries;
    http::testing::FakeUpstreams upstreams;
    upstreams.add("http://a", answer);
    http::Client client(upstreams.client_options(
        {.middleware = {client_metrics(calls), http::retry(), client_metrics(tries)}}));
    EXPECT_EQ(client.get({}, "http://a/busy")->status(), 503);
    EXPECT_TRUE(calls.prometheus_text().contains("http_client_requests_total{host=\"a\",code=\"5xx\"} 1\n"));
    EXPECT_TRUE(tries.prometheus_text().contains("http_client_requests_total{host=\"a\",code=\"5xx\"} 3\n"));
  });
}

TEST(ClientMetrics, CountHostsBeyondTheLimitTogether) {
  run_with(2, [] {
    Metrics metrics;
    http::testing::FakeUpstreams upstreams;
    for (const char* host : {"a", "b", "c", "d"}) upstreams.add("http://" + std::string(host), answer);
    http::Client client(
        upstreams.client_options({.middleware = {client_metrics(metrics, {.hosts_max = 2})}}));
    for (int i = 0; i < 2; ++i) {
      for (const char* host : {"a", "b", "c", "d"})
        EXPECT_EQ(client.get({}, "http://" + std::string(host) + "/")->status(), 200);
    }
    const std::string text = metrics.prometheus_text();
    for (const auto& [host, count] : {std::pair("a", "2"), std::pair("b", "2"), std::pair("(others)", "4")}) {
      const std::string line =
          "http_client_requests_total{host=\"" + std::string(host) + "\",code=\"2xx\"} " + count + "\n";
      EXPECT_TRUE(text.contains(line)) << line;
    }
    EXPECT_FALSE(text.contains("host=\"c\""));
  });
}

TEST(ClientMetrics, AreTheSameForAllClientsOfAService) {
  Metrics metrics;
  const auto first = client_metrics(metrics), second = client_metrics(metrics);
  Metrics other;
  (void)other.counter("http_client_requests_total", "Mine");
  EXPECT_THROW((void)client_metrics(other), std::invalid_argument);
}

}  // namespace
}  // namespace tuza
