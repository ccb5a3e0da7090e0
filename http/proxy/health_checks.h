// Asks each upstream now and then whether it is well, beside the requests that it serves.
//
//     asked --- failures_max checks in a row fail ---> unhealthy
//       ^                                                  |
//       `------------ passes_min in a row pass ------------'
//
// One goroutine for each upstream. Each check has a connection of its own: a kept one would say nothing about new ones.
//
// Thread-safe.
#pragma once

#include <tuza/http/proxy/upstreams.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/sync/context.h>

#include <atomic>
#include <memory>

namespace tuza::http {

class HealthChecks {
 public:
  // Throws std::invalid_argument.
  HealthChecks(const ReverseProxyOptions& options, std::shared_ptr<Upstreams> upstreams);

  // Checks from now on, until the end of this object, whose goroutines then end soon. May be repeated. Goroutines only; does
  // not park.
  void start() {
    if (due_.load(std::memory_order_relaxed)) [[unlikely]]
      begin();
  }

 private:
  void begin();

  const std::shared_ptr<Upstreams> upstreams_;
  const HealthCheck health_;
  const ClientOptions client_;
  CancellableContext stop_;  // written by begin(), once
  std::atomic<bool> due_;
};

}  // namespace tuza::http
