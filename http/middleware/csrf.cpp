#include <tuza/http/middleware/csrf.h>

#include <tuza/http/route/clean_path.h>
#include <tuza/http/route/pattern.h>
#include <tuza/http/route/route_tree.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/origin.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

// "host:port" of "https://host:port"; empty if it is not of that form.
std::string_view host_of(std::string_view origin) {
  const std::size_t at = origin.find("://");
  if (at == std::string_view::npos || at == 0) return {};
  const std::string_view host = origin.substr(at + 3);
  return host.find_first_of("/?#@") == std::string_view::npos ? host : std::string_view();
}

// Whether the route that answers may be another one than the bypass stands for, because it has no name where the bypass has
// one. Before a router, or a mounted one, nobody knows yet which route will answer.
bool may_be_another(std::string_view route, std::string_view bypass) {
  using Kind = Pattern::Kind;
  const auto found = route.empty() ? std::vector<Pattern::Segment>() : Pattern::parse(route).segments;
  const Pattern exempt = Pattern::parse(bypass);
  for (std::size_t i = 0; i < exempt.segments.size(); ++i) {
    const bool has_name = i < found.size() && found[i].kind == Kind::kName;
    if (exempt.segments[i].kind == Kind::kName && !has_name) return true;
  }
  return false;
}

class Protection {
 public:
  explicit Protection(CsrfOptions options) : options_(std::move(options)) {
    for (const std::string& origin : options_.trusted_origins) {
      if (!is_origin(origin)) {
        throw std::invalid_argument("csrf(): \"" + origin +
                                    R"(" is not an origin, as "https://example.com")");
      }
    }
    for (const std::string& pattern : options_.bypass) {
      bypass_.add(pattern, [](Request&, ResponseWriter&) {}, std::source_location::current());
    }
  }

  // An origin without a host, such as "null", is that of no request.
  static bool is_of_host(std::string_view origin, std::string_view host) {
    return !host_of(origin).empty() && equals_ignoring_case(host_of(origin), host);
  }

  [[nodiscard]] bool allows(Request& request) const {
    const Method method = request.method();
    if (method == Method::kGet || method == Method::kHead || method == Method::kOptions) return true;
    const std::string_view site = request.header("Sec-Fetch-Site").value_or("");
    const std::string_view origin = request.header("Origin").value_or("");
    if (site == "same-origin" || site == "none") return true;
    if (site.empty() && (origin.empty() || is_of_host(origin, request.host()))) {
      return true;
    }
    return is_exempt(request, origin);
  }
  [[nodiscard]] const Handler& refused() const { return options_.refused; }

 private:
  [[nodiscard]] bool is_exempt(Request& request, std::string_view origin) const {
    if (std::ranges::find(options_.trusted_origins, origin) != options_.trusted_origins.end()) return true;
    const std::string_view path = request.path();
    if (options_.bypass.empty() || !path.starts_with('/') || !is_clean(path)) return false;
    // The router may have found its own values before, or will find them.
    ExchangeBuffers& buffers = request.exchange().buffers();
    auto values = std::exchange(buffers.path_values, {});
    const RouteTree::Found found = bypass_.find(request.method(), request.host(), path, buffers);
    buffers.path_values = std::move(values);
    return found.route != nullptr && !found.slash_is_missing &&
           !may_be_another(request.pattern(), found.route->pattern);
  }

  CsrfOptions options_;
  RouteTree bypass_;
};

}  // namespace

Middleware csrf(CsrfOptions options) {
  return [protection = std::make_shared<const Protection>(std::move(options))](Handler next) -> Handler {
    return [protection, next = std::move(next)](Request& request, ResponseWriter& response) {
      if (protection->allows(request)) return next(request, response);
      if (protection->refused() != nullptr) return protection->refused()(request, response);
      response.error(403, "cross-origin request refused\n");
    };
  };
}

}  // namespace tuza::http
