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

// Of "GET /api/v1/orders17/{id}/item42": as a large service has them. Few share more than their first segments.
struct Routes {
  explicit Routes(std::size_t count) : resources(std::max<std::size_t>(1, count / 100)) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string pattern = "GET " + path(i, "{id}");
      tree.add(pattern, [](Request&, ResponseWriter&) {}, std::source_location::current());
      patterns.push_back(pattern);
    }
    ExchangeBuffers* const buffers = ExchangeBuffers::take();
    for (std::size_t i = 0; i < count; ++i) {
      const Route* const route = tree.find(Method::kGet, "example.com", request(i), *buffers).route;
      if (route == nullptr || route->pattern != patterns[i]) throw std::logic_error("the wrong route");
      expected.push_back(route);
    }
    ExchangeBuffers::give_back(buffers);
  }
  [[nodiscard]] std::string path(std::size_t i, const std::string& id) const {
    return "/api/v1/orders" + std::to_string(i % resources) + "/" + id + "/item" +
           std::to_string(i / resources);
  }
  [[nodiscard]] std::string request(std::size_t i) const { return path(i, std::to_string(i * 7919)); }

  const std::size_t resources;
  RouteTree tree;
  std::vector<std::string> patterns;
  std::vector<const Route*> expected;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void BM_HttpRoute(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const Routes routes(count);
  std::mt19937 random(1);
  ExchangeBuffers* const buffers = ExchangeBuffers::take();
  std::vector<std::size_t> chosen(256);
  std::vector<std::string> requests(chosen.size());
  std::vector<const Route*> found(chosen.size());
  for (auto _ : state) {
    for (std::size_t& i : chosen) i = random() % count;
    // A path has just arrived, so it is in the cache. Nothing else here is as large as the routes.
    for (std::size_t n = 0; n < chosen.size(); ++n) requests[n] = routes.request(chosen[n]);
    const double begun = cpu_seconds();
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      found[n] = routes.tree.find(Method::kGet, "example.com", requests[n], *buffers).route;
    }
    const double took = cpu_seconds() - begun;
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      if (found[n] != routes.expected[chosen[n]]) throw std::logic_error("the wrong route");
    }
    state.SetIterationTime(took / static_cast<double>(chosen.size()));
  }
  ExchangeBuffers::give_back(buffers);
}
BENCHMARK(BM_HttpRoute)->Arg(1)->Arg(100)->Arg(10'000)->UseManualTime()->Iterations(2000);

}  // namespace
}  // namespace tuza::http
