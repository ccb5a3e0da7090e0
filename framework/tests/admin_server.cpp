// A service with an admin address, for the black-box tests of service and admin endpoints.
//
//     admin_server     prints the two ports, "SERVICE ADMIN", and serves until its standard input ends; a
//                      line "drain" on it makes it not ready, "ready" makes it ready again.
#include <tuza/framework/admin.h>
#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/server.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/resource_pool.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using tuza::http::Request;
using tuza::http::ResponseWriter;

[[gnu::noinline]] void nap_for_long() { tuza::sleep_for(std::chrono::seconds(30)); }

[[gnu::noinline]] void burn_for_long(const std::atomic<bool>& stop) {
  for (std::atomic<int> work = 0; !stop; ++work) {
  }
}

tuza::http::Router service_router(std::atomic<bool>& stop) {
  tuza::http::Router router;
  router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("Hello!\n"); });
  router.handle("POST /echo", [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.send("application/octet-stream", *body);
  });
  router.handle("GET /throw", [](Request&, ResponseWriter&) { throw std::runtime_error("asked to"); });
  router.handle("GET /goexit", [](Request&, ResponseWriter&) { tuza::goexit(); });
  router.handle("GET /nap", [](Request&, ResponseWriter& res) {
    tuza::set_goroutine_name("napping");
    nap_for_long();
    res.text("slept\n");
  });
  router.handle("GET /block", [](Request&, ResponseWriter& res) {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    res.text("unblocked\n");
  });
  router.handle("GET /burn", [&stop](Request&, ResponseWriter& res) {
    burn_for_long(stop);
    res.text("burnt\n");
  });
  return router;
}

tuza::Result<void> serve() {
  std::atomic<bool> stop = false, ready = true;
  const auto metrics = std::make_shared<tuza::Metrics>();
  tuza::http::ServerOptions options;
  options.shutdown_timeout = std::chrono::milliseconds(100);
  options.body_bytes_max = 1000;
  tuza::http::Server service(tuza::http::with(service_router(stop), metrics->middleware()), options);
  metrics->add_server([&service] { return service.stats(); });
  metrics->set_log_lines_dropped([] { return 7; });
  tuza::ResourcePool<int> pool(
      {.open = [](const tuza::Context&) { return tuza::Result<int>(1); }, .limits = {.open_max = 3}});
  const auto leased = pool.acquire(tuza::Context::background());
  metrics->add_pool("db <i>", [&pool] { return pool.stats(); });
  tuza::http::Client client;
  metrics->add_client("weather", [&client] { return client.stats(); });
  const tuza::http::ReverseProxy proxy({.upstreams = {"http://127.0.0.1:9"}});
  metrics->add_proxy("api", [&proxy] { return proxy.stats(); });
  // As many connections as those of an App had once; and none ends because it is slow.
  tuza::http::Server admin(
      tuza::make_admin_router(
          {.ready = [&ready] { return ready.load(); }, .metrics = metrics, .service = "test \"<b>"}),
      {.write_timeout = std::chrono::hours(1),
       .response_rate_min_bytes_per_second = 0,
       .max_connections = 64,
       .shutdown_timeout = std::chrono::milliseconds(100)});
  for (tuza::http::Server* server : {&service, &admin}) {
    if (const auto listening = server->listen("127.0.0.1:0"); !listening) return listening;
  }
  tuza::WaitGroup serving;
  serving.go([&] { (void)service.serve(); });
  serving.go([&] { (void)admin.serve(); });
  tuza::blocking([&] {
    std::cout << service.endpoint().port() << ' ' << admin.endpoint().port() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      if (line == "drain" || line == "ready") ready = line == "ready";
    }
  });
  stop = true;
  service.shutdown();
  admin.shutdown();
  serving.wait();
  std::_Exit(0);  // goroutines that nap are abandoned
}

}  // namespace

int main() { return tuza::run(serve); }
