// Public header.
//
// What operators and their tools look at: health, metrics, goroutines, the scheduler at work.
//
//     const auto ready = [&] { return !draining; };
//     tuza::http::Server admin(tuza::make_admin_router({.ready = ready, .metrics = metrics}));
//
//     GET /healthz               200 while the process answers at all
//     GET /readyz                200, or 503 while ready() is false: no new requests, please
//     GET /metrics               for Prometheus (framework/metrics.h)
//     GET /debug/goroutines      all goroutines with stacks; ?group=1: the same ones together;
//                                ?stacks=0: without stacks
//     GET /debug/sched           a page that draws the scheduler, each second anew
//     GET /debug/sched.json      what the page draws
//
// It asks nobody who they are, and stacks tell much: listen on a loopback or private address only.
#pragma once

#include <tuza/framework/metrics.h>
#include <tuza/http/router.h>

#include <functional>
#include <memory>
#include <string>

namespace tuza {

struct AdminOptions {
  std::function<bool()> ready = {};             // called on any goroutine; none: always ready
  std::shared_ptr<const Metrics> metrics = {};  // none: the runtime and the process only
  std::string service = "tuza";                 // shown on the page
};

[[nodiscard]] http::Router make_admin_router(AdminOptions options = {});

}  // namespace tuza
