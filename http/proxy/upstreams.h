// The upstreams of a proxy: which one is asked next, and which are left out after failures.
//
//                     failures_max failures in a row
//     available ------------------------------------------> left out <--.
//         ^                                                    |        | it fails
//         | it answers                                         | pause  |
//         `---------------- one request tries it <-------------'--------'
//
// Beside that, health checks say whether one is unhealthy (http/proxy/health_checks.h): it is then asked behind all others.
//
// Thread-safe, without a lock: every word stands for itself, and two requests that choose at once may choose by words of
// different ages, which at worst gives one upstream a request more. Does not park.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/url.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct Upstream {
  Upstream(std::string text, const ClientOptions& options);

  const std::string name;
  const Url url;  // its target is "/"
  const std::uint64_t seed;
  Client client;
  std::atomic<std::size_t> active{0};
  std::atomic<std::uint64_t> requests{0}, failures{0};
  std::atomic<std::size_t> failed_in_a_row{0};
  std::atomic<std::int64_t> left_out_until_ns{0};  // of the monotonic clock; 0: it is available
  std::atomic<bool> unhealthy{false};
  std::atomic<std::uint64_t> checks{0}, checks_failed{0};
};

// Of the client that asks that upstream.
[[nodiscard]] ClientOptions client_options_for(const std::string& upstream, ClientOptions options);

class Upstreams {
 public:
  // Throws std::invalid_argument.
  explicit Upstreams(const ReverseProxyOptions& options);

  // One that is not among `tried`; null if there is none. `key`: for Balance::kHash.
  [[nodiscard]] Upstream* choose(std::string_view key, std::span<Upstream* const> tried);
  void answered(Upstream& upstream);
  void failed(Upstream& upstream, const Error& error);
  // By its checks; may be repeated.
  void healthy(Upstream& upstream);
  void unhealthy(Upstream& upstream, const Error& error);

  [[nodiscard]] std::deque<Upstream>& all() { return upstreams_; }

  [[nodiscard]] std::vector<UpstreamStats> stats() const;

 private:
  [[nodiscard]] Upstream* best(std::string_view key, std::span<Upstream* const> tried, std::int64_t now);

  const Balance balance_;
  const std::size_t failures_max_;
  const std::int64_t pause_ns_;
  std::deque<Upstream> upstreams_;  // they stay where they are
  std::atomic<std::size_t> next_{0};
};

}  // namespace tuza::http
