// The metrics that a program declares: their names, labels and handles, and what /metrics shows of them.
#include <tuza/framework/metrics.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza {
namespace {

using testing::run_with;

// The lines of /metrics whose metric begins with `prefix`, comments included.
std::string lines(const Metrics& metrics, const std::string& prefix) {
  std::string found;
  run_with(1, [&] {
    std::istringstream all(metrics.prometheus_text());
    for (std::string line; std::getline(all, line);) {
      const bool comment = line.starts_with("# HELP " + prefix) || line.starts_with("# TYPE " + prefix);
      if (comment || line.starts_with(prefix)) found += line + "\n";
    }
  });
  return found;
}

// The message of the std::invalid_argument that `declare` throws.
template <class F>
std::string refusal(F declare) {
  try {
    (void)declare();
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "";
}

TEST(OwnMetrics, AreShownWithHelpAndType) {
  Metrics metrics;
  const Counter orders = metrics.counter("orders_total", "Orders accepted");
  const Gauge depth = metrics.gauge("orders_waiting", "Orders in the queue");
  EXPECT_EQ(lines(metrics, "orders"),
            "# HELP orders_total Orders accepted\n# TYPE orders_total counter\norders_total 0\n"
            "# HELP orders_waiting Orders in the queue\n# TYPE orders_waiting gauge\norders_waiting 0\n");
  orders.add();
  orders.add(41);
  orders.add(0.5);
  depth.set(7);
  depth.add();
  depth.subtract(2.5);
  EXPECT_EQ(orders.value(), 42.5);
  EXPECT_EQ(depth.value(), 5.5);
  EXPECT_NE(lines(metrics, "orders").find("\norders_total 42.5\n"), std::string::npos);
  EXPECT_NE(lines(metrics, "orders").find("\norders_waiting 5.5\n"), std::string::npos);
}

TEST(OwnMetrics, ACounterDoesNotDecrease) {
  Metrics metrics;
  const Counter orders = metrics.counter("orders_total", "Orders");
  for (const double n : {-1.0, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(orders.add(n), std::invalid_argument) << n;
  }
  EXPECT_THROW(orders.add(-1), std::invalid_argument);
  orders.add(std::size_t{0});
  EXPECT_EQ(orders.value(), 0);
}

TEST(OwnMetrics, AHistogramCountsEachObservationInEveryBucketThatReachesIt) {
  Metrics metrics;
  const Histogram times = metrics.histogram("wait_seconds", "Time in the queue", {0.5, 1, 2});
  for (const double value : {0.25, 0.5, 0.75, 2.0, 3.0}) times.observe(value);
  times.observe(std::chrono::milliseconds(1500));
  EXPECT_EQ(
      lines(metrics, "wait_seconds"),
      "# HELP wait_seconds Time in the queue\n# TYPE wait_seconds histogram\n"
      "wait_seconds_count 6\nwait_seconds_sum 8\n"
      "wait_seconds_bucket{le=\"0.5\"} 2\nwait_seconds_bucket{le=\"1\"} 3\nwait_seconds_bucket{le=\"2\"} 5\n"
      "wait_seconds_bucket{le=\"+Inf\"} 6\n");
}

TEST(OwnMetrics, LabelsMakeAFamily) {
  Metrics metrics;
  const auto paid = metrics.counter("paid_total", "Payments", {"method", "shop"});
  const auto waits = metrics.histogram("paid_seconds", "Times", {1}, {"shop"});
  const Counter card = paid.with("card", std::string("a \"b\"\\\n"));
  paid.with("cash", "\xff\xc3\xa4").add(2);
  paid.with("card", "a \"b\"\\\n").add(3);  // the same again
  EXPECT_EQ(card.value(), 3);
  waits.with("x").observe(0.5);
  const std::string all = lines(metrics, "paid");
  EXPECT_NE(all.find("\npaid_total{method=\"card\",shop=\"a \\\"b\\\"\\\\\\n\"} 3\n"), std::string::npos)
      << all;
  EXPECT_NE(all.find("\npaid_total{method=\"cash\",shop=\"\xef\xbf\xbd\xc3\xa4\"} 2\n"), std::string::npos)
      << all;
  EXPECT_NE(all.find("\npaid_seconds_bucket{shop=\"x\",le=\"1\"} 1\n"), std::string::npos) << all;
  EXPECT_NE(
      refusal([&] { return paid.with("card"); }).find("\"paid_total\": it has the labels {method, shop}"),
      std::string::npos);
  EXPECT_THROW((void)paid.with("card", "a", "b"), std::invalid_argument);
}

TEST(OwnMetrics, TheSameDeclarationIsTheSameMetric) {
  Metrics metrics;
  metrics.counter("orders_total", "Orders").add();
  metrics.counter("orders_total", "other words").add();
  EXPECT_EQ(metrics.counter("orders_total", "").value(), 2);
  EXPECT_EQ(lines(metrics, "orders"),
            "# HELP orders_total Orders\n# TYPE orders_total counter\norders_total 2\n");
  (void)metrics.histogram("wait_seconds", "", {1, 2});
  EXPECT_EQ(refusal([&] { return metrics.gauge("orders_total", ""); }),
            "metric \"orders_total\": it is a counter already, not a gauge");
  EXPECT_EQ(refusal([&] { return metrics.counter("orders_total", "", {"kind"}); }),
            "metric \"orders_total\": it has the labels {} already, not {kind}");
  EXPECT_EQ(refusal([&] { return metrics.histogram("wait_seconds", "", {1, 3}); }),
            "metric \"wait_seconds\": it has other buckets already");
  EXPECT_EQ(refusal([&] { return metrics.counter("wait_seconds_count", ""); }),
            "metric \"wait_seconds_count\": its line wait_seconds_count would be one of the metric "
            "\"wait_seconds\", too");
}

TEST(OwnMetrics, WrongNamesAreRefused) {
  Metrics metrics;
  for (const char* name :
       {"", "9x", "a-b", "a b", "\xc3\xa4", "a\n", "a{", "process_x", "tuza_goroutines", "tuza_new",
        "http_requests_total", "http_request_duration_seconds_sum", "log_lines_dropped_total",
        "http_timeouts_total", "http_route_duration_seconds_sum"}) {
    EXPECT_TRUE(refusal([&] {
                  return metrics.counter(name, "");
                }).starts_with("metric \"" + std::string(name) + "\": "))
        << name;
  }
  for (const char* label : {"", "9x", "a-b", "a:b", "__a"}) {
    EXPECT_NE(
        refusal([&] { return metrics.gauge("fine", "", {label}); }).find("the label \"" + std::string(label)),
        std::string::npos)
        << label;
  }
  EXPECT_THROW((void)metrics.gauge("fine", "", {"a", "a"}), std::invalid_argument);
  EXPECT_THROW((void)metrics.histogram("fine", "", {1}, {"le"}), std::invalid_argument);
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& bounds :
       {std::vector<double>{}, {1, 1}, {2, 1}, {1, inf}, {-inf, 1}, {std::nan("")}, {1, std::nan("")}}) {
    EXPECT_THROW((void)metrics.histogram("fine", "", bounds), std::invalid_argument);
  }
  for (const char* name : {"http_client_requests_total", "a", "a:b", "_9"}) (void)metrics.counter(name, "");
}

TEST(OwnMetrics, HandlesAreSharedByGoroutinesAndOutliveTheMetrics) {
  auto metrics = std::make_unique<Metrics>();
  const auto orders = metrics->counter("orders_total", "Orders", {"kind"});
  const Histogram times = metrics->histogram("wait_seconds", "", {1});
  constexpr int kEach = 1000;
  run_with(2, [&] {
    WaitGroup all;
    for (int g = 0; g < 8; ++g) {
      all.go([&] {
        for (int i = 0; i < kEach; ++i) {
          orders.with("a").add();
          times.observe(0.25);
        }
      });
    }
    all.wait();
  });
  EXPECT_EQ(orders.with("a").value(), 8 * kEach);
  EXPECT_NE(lines(*metrics, "wait").find("wait_seconds_sum 2000\n"), std::string::npos);
  metrics.reset();
  orders.with("a").add();
  EXPECT_EQ(orders.with("a").value(), 8 * kEach + 1);
}

// An upstream that is there twice gets two turns; Prometheus refuses a page with a series that is there twice.
TEST(OwnMetrics, UpstreamsOfProxies) {
  Metrics metrics;
  EXPECT_EQ(lines(metrics, "proxy_"), "");
  metrics.add_proxy("api", [] {
    return std::vector<http::UpstreamStats>{
        {.name = "http://a",
         .unhealthy = true,
         .requests = 3,
         .failures = 1,
         .checks = 5,
         .checks_failed = 4},
        {.name = "http://b", .left_out = true, .active = 2, .client = {.open = 5, .idle = 3, .dialled = 9}},
        {.name = "http://a", .active = 1, .requests = 4}};
  });
  metrics.add_proxy("files", [] { return std::vector<http::UpstreamStats>{{.name = "http://a"}}; });
  const std::string text = lines(metrics, "proxy_upstream");
  for (const char* line :
       {"requests_total{proxy=\"api\",upstream=\"http://a\"} 7\n",
        "failures_total{proxy=\"api\",upstream=\"http://a\"} 1\n",
        "requests_in_flight{proxy=\"api\",upstream=\"http://b\"} 2\n",
        "up{proxy=\"api\",upstream=\"http://a\"} 1\n", "up{proxy=\"api\",upstream=\"http://b\"} 0\n",
        "up{proxy=\"files\",upstream=\"http://a\"} 1\n",
        "checks_total{proxy=\"api\",upstream=\"http://a\"} 5\n",
        "checks_failed_total{proxy=\"api\",upstream=\"http://a\"} 4\n",
        "connections_dialled_total{proxy=\"api\",upstream=\"http://b\"} 9\n",
        "connections{proxy=\"api\",upstream=\"http://b\",state=\"idle\"} 3\n",
        "connections{proxy=\"api\",upstream=\"http://b\",state=\"busy\"} 2\n"}) {
    EXPECT_NE(text.find(std::string("\nproxy_upstream_") + line), std::string::npos) << line;
  }
  EXPECT_EQ(text.find("up{proxy=\"api\",upstream=\"http://a\"}"),
            text.rfind("up{proxy=\"api\",upstream=\"http://a\"}"));
  EXPECT_NE(refusal([&] { return metrics.counter("proxy_upstream_up", "Mine"); }), "");
}

TEST(OwnMetrics, Clients) {
  Metrics metrics;
  EXPECT_EQ(lines(metrics, "http_client_"), "");
  for (int i = 0; i < 2; ++i) {
    metrics.add_client("weather", [] {
      return http::ClientStats{
          .open = 5, .idle = 3, .waiting = 1, .dialled = 7, .requests = 40, .repeated = 2};
    });
  }
  const std::string text = lines(metrics, "http_client_");
  for (const char* line :
       {"connections{client=\"weather\",state=\"idle\"} 6\n",
        "connections{client=\"weather\",state=\"busy\"} 4\n", "waiting{client=\"weather\"} 2\n",
        "connections_dialled_total{client=\"weather\"} 14\n", "sent_total{client=\"weather\"} 80\n",
        "repeated_total{client=\"weather\"} 4\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_NE(refusal([&] { return metrics.gauge("http_client_waiting", "Mine"); }), "");
}

TEST(OwnMetrics, ResourcePools) {
  Metrics metrics;
  EXPECT_EQ(lines(metrics, "resource_pool_"), "");
  for (int i = 0; i < 2; ++i) {
    metrics.add_pool("db", [] {
      return ResourceStats{.open = 4,
                           .in_use = 3,
                           .idle = 1,
                           .waiting = 2,
                           .waited = 5,
                           .wait_time = std::chrono::milliseconds(1500),
                           .opened = 9,
                           .open_failed = 1,
                           .closed_check = 4};
    });
  }
  metrics.add_pool("cache", [] { return ResourceStats{}; });
  const std::string text = lines(metrics, "resource_pool_");
  for (const char* line :
       {"open{pool=\"db\",state=\"idle\"} 2\n", "open{pool=\"db\",state=\"busy\"} 6\n",
        "waiting{pool=\"db\"} 4\n", "waits_total{pool=\"db\"} 10\n", "wait_seconds_total{pool=\"db\"} 3\n",
        "opened_total{pool=\"db\"} 18\n", "open_failures_total{pool=\"db\"} 2\n",
        "closed_total{pool=\"db\",reason=\"check\"} 8\n",
        "closed_total{pool=\"cache\",reason=\"life\"} 0\n"}) {
    EXPECT_NE(text.find(std::string("\nresource_pool_") + line), std::string::npos) << line << text;
  }
  EXPECT_NE(refusal([&] { return metrics.counter("resource_pool_opened_total", "Mine"); }), "");
}

}  // namespace
}  // namespace tuza
