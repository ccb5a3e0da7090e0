// The code of docs/reference/metrics.md.
#include <tuza/framework/admin.h>
#include <tuza/framework/app.h>
#include <tuza/framework/metrics.h>
#include <tuza/http/server.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/wait_group.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace metrics_page {

using tuza::http::Request;
using tuza::http::ResponseWriter;

void accept() {}
std::string state_of_queue() { return {}; }

//! [own]
int serve_orders(int argc, char** argv) {
  tuza::App app("orders");
  tuza::Metrics& metrics = app.metrics();
  const tuza::Gauge waiting = metrics.gauge("orders_waiting", "Orders in the queue");
  const tuza::Histogram times = metrics.histogram("order_seconds", "Time to accept an order", {0.01, 0.1, 1});
  const auto orders = metrics.counter("orders_total", "Orders accepted", {"kind"});
  return app.run(argc, argv, [&] {
    app.router().handle("POST /tea", [&, teas = orders.with("tea")](Request&, ResponseWriter& res) {
      const auto begun = std::chrono::steady_clock::now();
      waiting.add();
      accept();
      waiting.subtract();
      teas.add();
      times.observe(std::chrono::steady_clock::now() - begun);
      res.no_content();
    });
    app.admin().handle("GET /queue", [](Request&, ResponseWriter& res) { res.text(state_of_queue()); });
  });
}
//! [own]

//! [server]
tuza::Result<void> serve_with_metrics(tuza::http::Router router) {
  const auto metrics = std::make_shared<tuza::Metrics>();
  tuza::http::Server server(tuza::http::with(std::move(router), metrics->middleware()));
  metrics->add_server([&server] { return server.stats(); });
  if (auto listening = server.listen("0.0.0.0:8080"); !listening) return listening;

  tuza::http::Server admin(tuza::make_admin_router({.metrics = metrics, .service = "hello"}));
  if (auto listening = admin.listen("127.0.0.1:9090"); !listening) return listening;
  tuza::WaitGroup administering;
  administering.go([&admin] {
    if (auto served = admin.serve(); !served)
      tuza::log_line(tuza::LogLevel::kError, served.error().message());
  });

  const tuza::Result<void> served = server.serve();  // until something calls server.shutdown()
  admin.shutdown();
  administering.wait();
  return served;
}
//! [server]

}  // namespace metrics_page
