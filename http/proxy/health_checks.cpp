#include <tuza/http/proxy/health_checks.h>

#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

// With the path as it goes out.
HealthCheck valid(HealthCheck health) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("ReverseProxyOptions: health: ") + what);
  };
  if (health.path.empty()) return health;
  const Result<Url> url = Url::parse("http://a" + health.path);
  require(url && health.path.starts_with('/'), "path is no path");
  health.path = url->target;
  require(health.every.count() > 0, "every is not positive");
  require(health.timeout.count() > 0, "timeout is not positive");
  require(health.failures_max > 0, "failures_max is 0");
  require(health.passes_min > 0, "passes_min is 0");
  return health;
}

ClientOptions without_idle_connections(ClientOptions options) {
  options.idle_max = options.idle_per_origin_max = 0;
  return options;
}

// The checks of one upstream.
class Checks {
 public:
  Checks(Upstreams& upstreams, Upstream& upstream, HealthCheck health, const ClientOptions& client)
      : upstreams_(upstreams),
        upstream_(upstream),
        health_(std::move(health)),
        client_(client_options_for(upstream.text, upstream.place, client)) {}

  void run(const Context& stop) {
    while (!stop.done()) {
      const Result<void> passed = ask(stop);
      const bool asked = passed || !net::is_out_of_resources(passed.error());
      if (asked && !stop.done()) note(passed);
      (void)sleep_for(stop, health_.every);
    }
  }

 private:
  [[nodiscard]] Result<void> ask(const Context& stop) {
    const auto [ctx, cancel] = with_timeout(stop, health_.timeout);
    Url url = upstream_.url;
    url.target = health_.path;
    const Result<ClientResponse> answer = client_.send(ctx, ClientRequest(Method::kGet, std::move(url)));
    if (!answer) return std::unexpected(answer.error());
    if (health_.passes ? health_.passes(*answer) : answer->status() / 100 == 2) return {};
    return std::unexpected(errorf("GET {}: status {}", health_.path, answer->status()));
  }

  void note(const Result<void>& passed) {
    upstream_.checks.fetch_add(1, std::memory_order_relaxed);
    if (!passed) upstream_.checks_failed.fetch_add(1, std::memory_order_relaxed);
    passed_ = passed ? passed_ + 1 : 0;
    failed_ = passed ? 0 : failed_ + 1;
    if (failed_ >= health_.failures_max) upstreams_.unhealthy(upstream_, passed.error());
    if (passed_ >= health_.passes_min) upstreams_.healthy(upstream_);
  }

  Upstreams& upstreams_;
  Upstream& upstream_;
  const HealthCheck health_;
  Client client_;
  std::size_t failed_ = 0, passed_ = 0;  // in a row
};

}  // namespace

HealthChecks::HealthChecks(const ReverseProxyOptions& options)
    : health_(valid(options.health)), client_(without_idle_connections(options.client)) {}

void HealthChecks::watch(WaitGroup& group, std::shared_ptr<Upstreams> upstreams, UpstreamRef upstream,
                         Context stop) const {
  if (!wanted()) return;
  group.go([upstreams = std::move(upstreams), upstream = std::move(upstream), health = health_,
            client = client_,
            stop = std::move(stop)] { Checks(*upstreams, *upstream, health, client).run(stop); });
}

}  // namespace tuza::http
