// What a proxy does beside its requests: it looks names up, and has its upstreams checked.
//
//     names ---- every resolve_every ----> addresses ---> Upstreams ---> HealthChecks
//
// One goroutine for each name, and one for each upstream that is checked. They begin with the first request, and end with this
// object, which waits for them.
//
// Thread-safe.
#pragma once

#include <tuza/http/proxy/health_checks.h>
#include <tuza/http/proxy/upstreams.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>

namespace tuza::http {

class Background {
 public:
  // Throws std::invalid_argument.
  Background(const ReverseProxyOptions& options, std::shared_ptr<Upstreams> upstreams);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  // Parks until they have ended.
  ~Background();

  // Before each request. The first ones wait until each name has been looked up once, or `ctx` ends. Goroutines only; may park.
  void ready(const Context& ctx) {
    if (!ready_.load(std::memory_order_acquire)) [[unlikely]]
      become_ready(ctx);
  }

 private:
  // Of the goroutines.
  struct Work {
    Work(const ReverseProxyOptions& options, std::shared_ptr<Upstreams> all);
    void look_up(std::size_t name, const Context& stop) const;

    const std::shared_ptr<Upstreams> upstreams;
    const HealthChecks checks;
    const std::chrono::milliseconds every;
    const ReverseProxyOptions::Resolve resolve;
    Latch looked_up;  // each name once
    mutable WaitGroup awaited;
  };
  void begin();
  void become_ready(const Context& ctx);

  const std::shared_ptr<Work> work_;
  CancellableContext stop_;  // written once, by the first request
  rt::RunMark run_;
  std::atomic<bool> begun_{false}, ready_;
};

}  // namespace tuza::http
