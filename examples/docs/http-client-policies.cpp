// The code on docs/guide/http-client-policies.md.
#include <tuza/http.h>
#include <tuza/sync.h>
#include <tuza/tuza.h>

#include <chrono>
#include <string>

namespace http_client_policies_page {

namespace http = tuza::http;
using namespace std::chrono_literals;
using tuza::http::Client;
using tuza::http::Request;
using tuza::http::ResponseWriter;

//! [all]
Client client({.timeout = 5s,
               .middleware = {http::client_trace(), http::client_log({.shown = {"page"}}), http::retry(),
                              http::circuit_breaker(),
                              http::client_rate_limit({.per_second = 50, .burst = 100})}});
//! [all]

//! [open]
tuza::Result<std::string> prices(const tuza::Context& ctx, const std::string& cached) {
  auto res = client.get(ctx, "https://prices.example/today");
  if (!res && http::is_circuit_open(res.error())) return cached;  // nothing was sent
  if (!res) return std::unexpected(res.error());
  return res->body();
}
//! [open]

//! [trace]
void serve(http::Router& router) {
  router.use(http::request_id({.in_context = true}));
  router.handle("GET /prices", [](Request& req, ResponseWriter& res) {
    auto text = prices(req.context(), "");  // goes out with the traceparent of this request
    if (!text) return res.error(502);
    res.json(*text);
  });
}
//! [trace]

}  // namespace http_client_policies_page
