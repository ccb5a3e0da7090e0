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
// An upstream whose name is looked up again and again (ReverseProxyOptions::resolve_every) stands for one upstream for each
// address. Those that come and go do so under a lock, and the others stay as they are; without such a name there is no lock.
//
// Thread-safe: every word of an upstream stands for itself, and two requests that choose at once may choose by words of
// different ages, which at worst gives one upstream a request more. Does not park for I/O.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/url.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct Upstream {
  // `place`: of the address, "10.0.0.1:8080"; empty: the text says it.
  Upstream(const std::string& text, std::string place, const ClientOptions& options);

  const std::string name;  // as in the options, with "@" and the place
  const Url url;           // its target is "/"
  const std::uint64_t seed;
  Client client;
  std::atomic<std::size_t> active{0};
  std::atomic<std::uint64_t> requests{0}, failures{0};
  std::atomic<std::size_t> failed_in_a_row{0};
  std::atomic<std::int64_t> left_out_until_ns{0};  // of the monotonic clock; 0: it is available
  std::atomic<bool> unhealthy{false};
  std::atomic<std::uint64_t> checks{0}, checks_failed{0};
  const std::string text;   // of the options
  const std::string place;  // looked up; usually empty
  // Of one with a place: ends when it is no longer one of them. Written before others see the upstream.
  CancellableContext life;
};
using UpstreamRef = std::shared_ptr<Upstream>;

// Of the client that asks it.
[[nodiscard]] ClientOptions client_options_for(const std::string& text, const std::string& place,
                                               ClientOptions options);

class Upstreams {
 public:
  // Throws std::invalid_argument.
  explicit Upstreams(const ReverseProxyOptions& options);

  // One that is not among `tried`; null if there is none. `key`: for Balance::kHash.
  [[nodiscard]] UpstreamRef choose(std::string_view key, std::span<const UpstreamRef> tried);
  void answered(Upstream& upstream);
  void failed(Upstream& upstream, const Error& error);
  // By its checks; may be repeated.
  void healthy(Upstream& upstream);
  void unhealthy(Upstream& upstream, const Error& error);

  [[nodiscard]] std::vector<UpstreamRef> all() const;
  // The names to look up, "http://app.internal:8080"; none unless the options ask for it.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // What such a name stands for from now on. Returns those that are new; their lives end with `stop` at the latest.
  std::vector<UpstreamRef> set_places(std::size_t name, std::span<const std::string> places,
                                      const Context& stop);

  [[nodiscard]] std::vector<UpstreamStats> stats() const;

 private:
  [[nodiscard]] UpstreamRef best(std::string_view key, std::span<const UpstreamRef> tried,
                                 std::int64_t now) const;
  // Held only where there are names.
  [[nodiscard]] std::unique_lock<Mutex> lock() const {
    return names_.empty() ? std::unique_lock<Mutex>() : std::unique_lock(mutex_);
  }

  const Balance balance_;
  const std::size_t failures_max_;
  const std::int64_t pause_ns_;
  const ClientOptions client_;
  std::vector<std::string> names_;  // constant after construction
  mutable Mutex mutex_;
  std::vector<UpstreamRef>
      upstreams_;  // without names, constant after construction; otherwise guarded by lock()
  mutable std::atomic<std::size_t> next_{0};
};

}  // namespace tuza::http
