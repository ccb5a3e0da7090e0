// The code of docs/reference/metrics.md.
#include <tuza/framework/admin.h>
#include <tuza/framework/metrics.h>
#include <tuza/http/server.h>
#include <tuza/sched/sync/wait_group.h>

#include <memory>
#include <utility>

namespace metrics_page {

//! [server]
tuza::Result<void> serve_with_metrics(tuza::http::Router router) {
  const auto metrics = std::make_shared<tuza::Metrics>();
  tuza::http::Server server(tuza::http::with(std::move(router), metrics->middleware()));
  metrics->add_server([&server] { return server.stats(); });
  if (auto listening = server.listen("0.0.0.0:8080"); !listening) return listening;

  tuza::http::Server admin(tuza::make_admin_router({.metrics = metrics, .service = "hello"}));
  if (auto listening = admin.listen("127.0.0.1:9090"); !listening) return listening;
  tuza::WaitGroup administering;
  administering.go([&admin] { (void)admin.serve(); });

  const tuza::Result<void> served = server.serve();  // until something calls server.shutdown()
  admin.shutdown();
  administering.wait();
  return served;
}
//! [server]

}  // namespace metrics_page
