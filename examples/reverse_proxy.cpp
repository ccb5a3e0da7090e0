// A proxy in front of several servers: reverse_proxy --set 'proxy.upstreams=["http://127.0.0.1:8081", "http://127.0.0.1:8082"]'
#include <tuza/framework/app.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/errorf.h>

#include <chrono>
#include <expected>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

tuza::http::Balance balance_of(const std::string& name) {
  using tuza::http::Balance;
  static const std::map<std::string, Balance> kByName{
      {"turns", Balance::kRoundRobin}, {"requests", Balance::kLeastRequests}, {"client", Balance::kHash}};
  const auto found = kByName.find(name);
  if (found == kByName.end()) throw std::invalid_argument("turns, requests or client, not " + name);
  return found->second;
}

std::string table(const std::vector<tuza::http::UpstreamStats>& upstreams) {
  std::string text;
  for (const auto& one : upstreams) {
    text += one.name +
            (one.unhealthy  ? " unhealthy"
             : one.left_out ? " left out"
                            : " in use") +
            ", " + std::to_string(one.active) + " active, " + std::to_string(one.requests) + " requests, " +
            std::to_string(one.failures) + " failures, " + std::to_string(one.client.idle) +
            " idle connections\n";
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("reverse_proxy");
  const auto upstreams = app.setting("proxy.upstreams", std::vector<std::string>{"http://127.0.0.1:8081"},
                                     "The servers behind, as URLs without a path or as unix:PATH");
  upstreams.check(
      [](const std::vector<std::string>& urls) { tuza::http::ReverseProxy proxy({.upstreams = urls}); });
  const auto balance =
      app.setting("proxy.balance", "turns", "Who is asked next: by turns, requests or client");
  balance.check([](const std::string& name) { balance_of(name); });
  const auto health = app.setting(
      "proxy.health", "", "A path that each server answers with 2xx while it is well; empty: no checks");
  health.check([](const std::string& path) -> tuza::Result<void> {
    if (path.empty() || path.starts_with('/')) return {};
    return std::unexpected(tuza::errorf("a path begins with /, not {}", path));
  });
  const auto every =
      app.setting("proxy.health_every", std::chrono::milliseconds(5'000), "Time between checks");
  every.check([](std::chrono::milliseconds time) -> tuza::Result<void> {
    if (time.count() > 0) return {};
    return std::unexpected(tuza::errorf("must be above 0s"));
  });
  const auto resolve_every = app.setting("proxy.resolve_every", std::chrono::milliseconds(0),
                                         "Above 0: a server for each address of a name");
  const auto timeout = app.setting("proxy.timeout", std::chrono::milliseconds(30'000), "Wait for an answer");
  const auto stall_timeout =
      app.setting("proxy.stall_timeout", std::chrono::milliseconds(60'000),
                  "Wait for more of an answer, or until a server takes more of an upload; 0s: no limit");
  return app.run(argc, argv, [&] {
    tuza::http::ReverseProxyOptions options{.upstreams = *upstreams, .balance = balance_of(*balance)};
    options.client.head_timeout = *timeout;
    options.client.stall_timeout = *stall_timeout;
    options.resolve_every = *resolve_every;
    options.health.path = *health;
    options.health.every = *every;
    const tuza::http::ReverseProxy proxy(options);
    app.router().handle("/", proxy);
    app.metrics().add_proxy("proxy", [proxy] { return proxy.stats(); });
    app.admin().handle("GET /upstreams", [proxy](tuza::http::Request&, tuza::http::ResponseWriter& res) {
      res.text(table(proxy.stats()));
    });
  });
}
