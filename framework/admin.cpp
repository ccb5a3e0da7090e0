#include <tuza/framework/admin.h>

#include <tuza/framework/admin/index_page.h>
#include <tuza/framework/admin/sched_json.h>
#include <tuza/framework/admin/sched_page.h>
#include <tuza/sched/goroutine_dump.h>
#include <tuza/sched/sync/semaphore.h>

#include <memory>
#include <utility>

namespace tuza {
namespace {

using http::Request;
using http::ResponseWriter;

// Lets a few requests at a time pass; others get 503. These handlers take time and memory, and wait for clients that read
// slowly: they must not take all connections of the admin address, which probes need.
http::Handler gated(const std::shared_ptr<Semaphore>& gate, http::Handler next) {
  return [gate, next = std::move(next)](Request& request, ResponseWriter& response) {
    if (!gate->try_acquire()) {
      response.set_header("Retry-After", "1");
      return response.error(503, "others are being answered; try again\n");
    }
    http::observe(next, request, response, [&gate](int) { gate->release(); });
  };
}

// Who reads dumps does not keep the metrics from a server that scrapes them.
constexpr int kDebugAtOnce = 16, kScrapesAtOnce = 16;

void no_store(ResponseWriter& response) { response.set_header("Cache-Control", "no-store"); }

bool flag(const Request& request, std::string_view name, bool otherwise) {
  const std::optional<std::string_view> value = request.query_value(name);
  return value ? *value != "0" && *value != "false" : otherwise;
}

void send_goroutines(const Request& request, ResponseWriter& response) {
  const DumpOptions options{.group = flag(request, "group", false),
                            .stacks = flag(request, "stacks", true),
                            .frames = flag(request, "frames", false)};
  no_store(response);
  response.set_header("Content-Type", "text/plain; charset=utf-8");
  dump_goroutines([&](std::string_view text) { return response.write(text).has_value(); }, options);
}

void send_safe_html(ResponseWriter& response, std::string_view html) {
  // The pages need nothing from other origins, and must not be able to load anything from them.
  response.set_header(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
      "connect-src 'self'; frame-ancestors 'none'");
  response.send("text/html; charset=utf-8", html);
}

void send_page(const Request&, ResponseWriter& response) {
  no_store(response);
  send_safe_html(response, sched_page());
}

void send_index(const Request& request, ResponseWriter& response, std::string_view service) {
  no_store(response);
  response.set_header("Vary", "Accept");
  const bool html = request.header("Accept").value_or("").find("text/html") != std::string_view::npos;
  if (html) return send_safe_html(response, index_html(service));
  response.text(index_text(service));
}

}  // namespace

http::Router make_admin_router(AdminOptions options) {
  if (options.metrics == nullptr) options.metrics = std::make_shared<Metrics>();
  http::Router router;
  const auto debug = std::make_shared<Semaphore>(kDebugAtOnce),
             scrapes = std::make_shared<Semaphore>(kScrapesAtOnce);
  for (const char* pattern : {"GET /{$}", "GET /debug", "GET /debug/{rest...}"}) {
    router.handle(pattern, [name = options.service](const Request& request, ResponseWriter& response) {
      if (request.path_value("rest").value_or("").empty()) return send_index(request, response, name);
      response.error(404);
    });
  }
  router.handle("GET /healthz", [](const Request&, ResponseWriter& response) {
    no_store(response);
    response.text("ok\n");
  });
  router.handle("GET /readyz", [ready = std::move(options.ready)](const Request&, ResponseWriter& response) {
    const bool is_ready = !ready || ready();
    response.status(is_ready ? 200 : 503);
    no_store(response);
    response.text(is_ready ? "ready\n" : "draining\n");
  });
  router.handle("GET /metrics",
                gated(scrapes, [metrics = options.metrics](const Request&, ResponseWriter& response) {
                  no_store(response);
                  response.send(Metrics::kContentType, metrics->prometheus_text());
                }));
  router.handle("GET /debug/goroutines", gated(debug, send_goroutines));
  router.handle("GET /debug/sched", gated(debug, send_page));
  router.handle("GET /debug/sched.json",
                gated(debug, [metrics = options.metrics, service = std::move(options.service)](
                                 const Request&, ResponseWriter& response) {
                  no_store(response);
                  response.json(sched_json(service, *metrics));
                }));
  return router;
}

}  // namespace tuza
