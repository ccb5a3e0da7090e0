#include <tuza/framework/admin.h>

#include <tuza/framework/admin/sched_json.h>
#include <tuza/framework/admin/sched_page.h>
#include <tuza/sched/goroutine_dump.h>

#include <utility>

namespace tuza {
namespace {

using http::Request;
using http::ResponseWriter;

void no_store(ResponseWriter& response) { response.header("Cache-Control", "no-store"); }

bool flag(const Request& request, std::string_view name, bool otherwise) {
  const std::optional<std::string_view> value = request.query_value(name);
  return value ? *value != "0" && *value != "false" : otherwise;
}

void send_goroutines(const Request& request, ResponseWriter& response) {
  const DumpOptions options{.group = flag(request, "group", false), .stacks = flag(request, "stacks", true)};
  no_store(response);
  response.header("Content-Type", "text/plain; charset=utf-8");
  dump_goroutines([&](std::string_view text) { return response.write(text).has_value(); }, options);
}

void send_page(const Request&, ResponseWriter& response) {
  no_store(response);
  // The page needs nothing from other origins, and must not be able to load anything from them.
  response.header("Content-Security-Policy",
                  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
                  "connect-src 'self'; frame-ancestors 'none'");
  response.send("text/html; charset=utf-8", sched_page());
}

}  // namespace

http::Router make_admin_router(AdminOptions options) {
  if (options.metrics == nullptr) options.metrics = std::make_shared<Metrics>();
  http::Router router;
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
  router.handle("GET /metrics", [metrics = options.metrics](const Request&, ResponseWriter& response) {
    no_store(response);
    response.send(Metrics::kContentType, metrics->prometheus_text());
  });
  router.handle("GET /debug/goroutines", send_goroutines);
  router.handle("GET /debug/sched", send_page);
  router.handle("GET /debug/sched.json", [metrics = options.metrics, service = std::move(options.service)](
                                             const Request&, ResponseWriter& response) {
    no_store(response);
    response.json(sched_json(service, *metrics));
  });
  return router;
}

}  // namespace tuza
