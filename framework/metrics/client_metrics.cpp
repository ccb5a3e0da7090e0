#include <tuza/framework/client_metrics.h>

#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/clock.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza {
namespace {

constexpr std::array<std::string_view, 6> kCodes{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
// Calls over a network: slower than the handlers of HttpCounts.
const std::vector<double> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                  0.5,   1,      2.5,   5,    10,    30,   60};

// Thread-safe.
class ClientCounts {
 public:
  ClientCounts(Metrics& metrics, const ClientMetricsOptions& options)
      : options_(options),
        requests_(metrics.counter("http_client_requests_total",
                                  "Requests by host and status class; none: no response, or nothing was sent",
                                  {"host", "code"})),
        durations_(metrics.histogram("http_client_request_duration_seconds",
                                     "Time until the head of the response", kBounds, {"host"})) {}

  void add(const std::string& host, int status, std::chrono::nanoseconds duration) {
    const Host& counts = find(host);
    const std::size_t code = static_cast<std::size_t>(status) / 100;
    counts.requests[code < kCodes.size() ? code : 0].add();
    counts.durations.observe(duration);
  }

 private:
  struct Host {
    std::vector<Counter> requests;  // by kCodes
    Histogram durations;
  };

  // Hosts stay where they are, until the end.
  const Host& find(const std::string& name) {
    const LockGuard lock(mutex_);
    if (const auto known = hosts_.find(name); known != hosts_.end()) return known->second;
    const std::string shown = hosts_.size() < options_.hosts_max ? name : "(others)";
    if (const auto known = hosts_.find(shown); known != hosts_.end()) return known->second;
    std::vector<Counter> requests;
    requests.reserve(kCodes.size());
    for (const std::string_view code : kCodes) requests.push_back(requests_.with(shown, code));
    return hosts_.emplace(shown, Host{std::move(requests), durations_.with(shown)}).first->second;
  }

  const ClientMetricsOptions options_;
  const MetricFamily<Counter> requests_;
  const MetricFamily<Histogram> durations_;
  Mutex mutex_;
  std::map<std::string, Host, std::less<>> hosts_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace

http::ClientMiddleware client_metrics(Metrics& metrics, ClientMetricsOptions options) {
  return [counts = std::make_shared<ClientCounts>(metrics, options)](
             const Context& ctx, http::ClientRequest& request, const http::ClientNext& next) {
    const auto begun = now();
    Result<http::ClientResponse> response = next(ctx, request);
    counts->add(request.url() ? request.url()->authority : std::string(), response ? response->status() : 0,
                now() - begun);
    return response;
  };
}

}  // namespace tuza
