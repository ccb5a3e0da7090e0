#include <tuza/http/options.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/head.h>
#include <tuza/sched/go.h>

#include <stdexcept>
#include <string>

namespace tuza::http {

void check(const ServerOptions& options) {
  if (options.headers_max > kHeadersLimit) {
    throw std::invalid_argument("http::ServerOptions: headers_max is above " + std::to_string(kHeadersLimit));
  }
  if (options.proxy_protocol != net::ProxyProtocol::kOff && options.proxies.empty()) {
    throw std::invalid_argument(
        "http::ServerOptions: proxy_protocol without proxies, whose headers are believed");
  }
  if (options.stack_bytes > kStackBytesMax) {
    throw std::invalid_argument("http::ServerOptions: stack_bytes is above 64 MiB");
  }
  if (has_control_char(options.server_name)) {
    throw std::invalid_argument("http::ServerOptions: control character in server_name");
  }
}

}  // namespace tuza::http
