// The code on docs/guide/reverse-proxy.md.
#include <tuza/framework/app.h>
#include <tuza/http.h>
#include <tuza/tuza.h>

#include <chrono>
#include <string>
#include <utility>

namespace reverse_proxy_page {

using namespace std::chrono_literals;

using tuza::http::Balance;
using tuza::http::ClientRequest;
using tuza::http::ProxyFailure;
using tuza::http::Request;
using tuza::http::ResponseWriter;
using tuza::http::ReverseProxy;

//! [first]
void routes(tuza::http::Router& router) {
  router.handle("/", ReverseProxy({.upstreams = {"http://10.0.0.1:8080", "http://10.0.0.2:8080"}}));
  router.mount("/files", ReverseProxy({.upstreams = {"unix:/run/files.sock"}}));  // "/files/x" is "/x" there
}
//! [first]

//! [hooks]
ReverseProxy api(const std::string& token) {
  tuza::http::ReverseProxyOptions options{.upstreams = {"https://api.internal"}, .keep_host = false};
  options.rewrite = [token](const Request&, ClientRequest& out) {
    tuza::http::Url url = *out.url();
    url.target.insert(0, "/v2");
    out.set_url(std::move(url)).set_header("Authorization", "Bearer " + token);
  };
  options.on_response = [](const tuza::http::ClientResponse&, ResponseWriter& out) {
    out.remove_header("X-Powered-By");
  };
  options.on_failure = [](Request&, ResponseWriter& res, const ProxyFailure& failure) {
    res.set_header("Retry-After", "5");
    res.json(failure.status, R"({"error": "try again later"})");
  };
  return ReverseProxy(options);
}
//! [hooks]

//! [hash]
ReverseProxy sessions() {
  tuza::http::ReverseProxyOptions options{.upstreams = {"http://10.0.0.1:8080", "http://10.0.0.2:8080"},
                                          .balance = Balance::kHash};
  options.hash_key = [](const Request& req) { return std::string(req.cookie("session").value_or("")); };
  return ReverseProxy(options);
}
//! [hash]

//! [health]
ReverseProxy checked() {
  tuza::http::ReverseProxyOptions options{.upstreams = {"http://10.0.0.1:8080", "http://10.0.0.2:8080"}};
  options.health = {.path = "/healthz"};
  return ReverseProxy(options);
}
//! [health]

//! [names]
ReverseProxy pods() {
  return ReverseProxy({.upstreams = {"http://app.internal:8080"}, .resolve_every = 10s});
}
//! [names]

}  // namespace reverse_proxy_page
