// Public header.
//
// What a service counts and times, for Prometheus: the runtime, the process, HTTP.
//
//     auto metrics = std::make_shared<tuza::Metrics>();
//     tuza::http::Server server(tuza::http::with(std::move(router), metrics->middleware()));
//     metrics->add_server([&server] { return server.stats(); });
//     auto admin = tuza::make_admin_router({.metrics = metrics});             // serves /metrics
//
// A request costs two readings of the clock and five relaxed additions to numbers of its own P. Runtime and
// process are looked at when somebody asks. Without the middleware requests cost nothing and are not counted.
//
// Thread-safe, but for add_server() and set_log_lines_dropped(), which come first.
#pragma once

#include <tuza/http/middleware.h>
#include <tuza/http/server_stats.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tuza {

class HttpCounts;

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // To stand around the handlers whose requests count; outermost, so that it times the others, too. May be
  // asked for any number of times, and used after this object has gone. `access_log`: it writes the access
  // log (framework/access_log.h), too, with the same readings of the clock.
  [[nodiscard]] http::Middleware middleware(bool access_log = false);

  // Where connections and refused requests are counted; those of several servers are added up. Must stay
  // callable while this object may be asked.
  void add_server(std::function<http::ServerStats()> stats);
  void set_log_lines_dropped(std::function<std::uint64_t()> dropped);

  // The text format of Prometheus, version 0.0.4. Looks at every goroutine and at /proc; parks.
  [[nodiscard]] std::string prometheus_text() const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // Requests answered and in flight, and bytes of response bodies, since the beginning.
  struct Http {
    std::uint64_t requests = 0, errors = 0;  // errors: status 5xx, or no answer
    std::int64_t in_flight = 0;
    std::uint64_t response_bytes = 0;
    std::uint64_t duration_ns = 0;  // of all requests together
    http::ServerStats servers;
  };
  [[nodiscard]] Http http() const;

 private:
  [[nodiscard]] http::ServerStats all_servers() const;

  std::shared_ptr<HttpCounts> http_;
  std::vector<std::function<http::ServerStats()>> servers_;
  std::function<std::uint64_t()> log_lines_dropped_;
};

}  // namespace tuza
