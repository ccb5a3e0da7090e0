// How long the search for a route takes, by the number of routes. The requests come in random order, so that what does not
// fit into the caches is not found there.
#include <tuza/http/route/route_tree.h>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <random>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {
namespace {

struct Routes {
  RouteTree tree;
  std::vector<std::string> patterns, paths;  // the request for each pattern
};

// "GET /api/v1/orders17/{id}/item42": as a large service has them. Few share more than their first segments.
Routes make_routes(std::size_t count) {
  Routes routes;
  const std::size_t resources = std::max<std::size_t>(1, count / 100);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string resource = "/api/v1/orders" + std::to_string(i % resources) + "/";
    const std::string item = "/item" + std::to_string(i / resources);
    routes.patterns.push_back("GET " + resource + "{id}" + item);
    routes.paths.push_back(resource + std::to_string(i * 7919) + item);
    routes.tree.add(
        routes.patterns.back(), [](Request&, ResponseWriter&) {}, std::source_location::current());
  }
  return routes;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void BM_HttpRoute(benchmark::State& state) {
  const Routes routes = make_routes(static_cast<std::size_t>(state.range(0)));
  std::mt19937 random(1);
  ExchangeBuffers* const buffers = ExchangeBuffers::take();
  std::vector<std::string> requests(256);
  std::vector<const Route*> found(requests.size());
  for (auto _ : state) {
    std::vector<std::size_t> chosen(requests.size());
    for (std::size_t& i : chosen) i = random() % routes.paths.size();
    // A path has just arrived, so it is in the cache.
    for (std::size_t n = 0; n < requests.size(); ++n) requests[n] = routes.paths[chosen[n]];
    const double begun = cpu_seconds();
    for (std::size_t n = 0; n < requests.size(); ++n) {
      found[n] = routes.tree.find(Method::kGet, "example.com", requests[n], *buffers).route;
    }
    const double took = cpu_seconds() - begun;
    for (std::size_t n = 0; n < requests.size(); ++n) {
      if (found[n] == nullptr || found[n]->pattern != routes.patterns[chosen[n]])
        throw std::logic_error("the wrong route");
    }
    state.SetIterationTime(took / static_cast<double>(requests.size()));
  }
  ExchangeBuffers::give_back(buffers);
}
BENCHMARK(BM_HttpRoute)->Arg(1)->Arg(100)->Arg(10'000)->UseManualTime()->Iterations(2000);

}  // namespace
}  // namespace tuza::http
