// Public header.
//
// The admin endpoints for operators and their tools: health, metrics, goroutines, the state of the scheduler.
//
//     const auto ready = [&] { return !draining; };
//     tuza::http::Server admin(tuza::make_admin_router({.ready = ready, .metrics = metrics}));
//
//     GET /                      what is here: plain text, or HTML for clients that accept it; the same: /debug/
//     GET /healthz               200 while the process can answer at all
//     GET /readyz                200, or 503 while ready() is false: send no new requests
//     GET /metrics               for Prometheus (framework/metrics.h)
//     GET /debug/goroutines      all goroutines with stacks; ?group=1: identical ones grouped;
//                                ?stacks=0: without stacks
//     GET /debug/sched           a page that draws the scheduler, refreshed every second
//     GET /debug/sched.json      the data behind that page
//
// At most 16 requests of /debug and 16 of /metrics are answered at a time, others get 503 with Retry-After: readers
// that are slow do not keep probes from the connections of this server.
//
// There is no authentication, and stacks reveal much: listen on a loopback or private address only.
#pragma once

#include <tuza/framework/metrics.h>
#include <tuza/http/router.h>

#include <functional>
#include <memory>
#include <string>

namespace tuza {

struct AdminOptions {
  std::function<bool()> ready = {};             // called on any goroutine; empty: always ready
  std::shared_ptr<const Metrics> metrics = {};  // null: metrics of the runtime and the process only
  std::string service = "tuza";                 // shown on the page
};

[[nodiscard]] http::Router make_admin_router(AdminOptions options = {});

}  // namespace tuza
