// Asks each upstream now and then whether it is well, beside the requests that it serves.
//
//     asked --- failures_max checks in a row fail ---> unhealthy
//       ^                                                  |
//       `------------ passes_min in a row pass ------------'
//
// Each check has a connection of its own: a kept one would say nothing about new ones.
//
// Thread-safe: constant after construction.
#pragma once

#include <tuza/http/proxy/upstreams.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>

#include <memory>

namespace tuza::http {

class HealthChecks {
 public:
  // Throws std::invalid_argument.
  explicit HealthChecks(const ReverseProxyOptions& options);

  [[nodiscard]] bool wanted() const { return !health_.path.empty(); }
  // Starts a goroutine in `group` that checks `upstream` until `stop` ends, if checks are wanted.
  void watch(WaitGroup& group, std::shared_ptr<Upstreams> upstreams, UpstreamRef upstream,
             Context stop) const;

 private:
  const HealthCheck health_;
  const ClientOptions client_;
};

}  // namespace tuza::http
