#include <tuza/http/middleware/cors.h>

#include <tuza/http/serve/vary.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>
#include <tuza/http/wire/origin.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    if (text.empty() || has_control_char(text) || text.contains(',')) {
      throw std::invalid_argument("cors(): \"" + text + "\" cannot stand in a list");
    }
    all.append(all.empty() ? "" : ", ").append(text);
  }
  return all;
}

bool has(const std::vector<std::string>& texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

class Policy {
 public:
  explicit Policy(CorsOptions options)
      : options_(std::move(options)),
        any_origin_(has(options_.origins, "*")),
        any_header_(has(options_.headers, "*")),
        any_method_(has(options_.methods, "*")),
        methods_(joined(options_.methods)),
        headers_(joined(options_.headers)),
        exposed_(joined(options_.exposed)),
        max_age_(std::to_string(options_.max_age.count())) {
    for (const std::string& origin : options_.origins) {
      if (origin != "*" && origin != "null" && !is_origin(origin)) {
        throw std::invalid_argument("cors(): no browser sends the origin \"" + origin +
                                    R"(", but one like "https://example.com")");
      }
    }
    if (options_.credentials && has(options_.exposed, "*"))
      throw std::invalid_argument(R"(cors(): with credentials, browsers take "*" in `exposed` for a name)");
    if (any_origin_ && options_.credentials) {
      throw std::invalid_argument(
          R"(cors(): credentials need a list of origins: with "*", every page would act as the user)");
    }
    if (options_.max_age.count() < 0) throw std::invalid_argument("cors(): negative max_age");
  }

  // True: answered here.
  bool handle(const Request& request, ResponseWriter& response) const {
    const std::optional<std::string_view> origin = request.header("Origin");
    const bool preflight = request.method() == Method::kOptions && origin &&
                           request.header("Access-Control-Request-Method").has_value();
    if (preflight) {
      answer_preflight(request, response, *origin);
      return true;
    }
    // Also without Origin: a cache must not give this response to a page that asks with one.
    if (!any_origin_) add_vary(response, response.headers(), "Origin");
    if (!origin || !allows(*origin)) return false;
    add_origin(response, *origin);
    if (!exposed_.empty()) response.set_header("Access-Control-Expose-Headers", exposed_);
    return false;
  }

 private:
  [[nodiscard]] bool allows(std::string_view origin) const {
    return any_origin_ || has(options_.origins, origin) ||
           (options_.allow_origin && options_.allow_origin(origin));
  }

  void add_origin(ResponseWriter& response, std::string_view origin) const {
    response.set_header("Access-Control-Allow-Origin", any_origin_ ? "*" : origin);
    if (options_.credentials) response.set_header("Access-Control-Allow-Credentials", "true");
  }

  // A refused preflight has no fields of permission; the browser then does not send the request.
  void answer_preflight(const Request& request, ResponseWriter& response, std::string_view origin) const {
    response.add_header("Vary",
                        "Origin, Access-Control-Request-Method, Access-Control-Request-Headers, "
                        "Access-Control-Request-Private-Network");
    response.status(204);
    const std::string_view method = request.header("Access-Control-Request-Method").value_or("");
    const std::string_view wanted = request.header("Access-Control-Request-Headers").value_or("");
    if (!allows(origin) || !(any_method_ || has(options_.methods, method)) || !allows_headers(wanted)) return;
    const bool network = request.header("Access-Control-Request-Private-Network") == "true";
    if (network && !options_.private_network) return;
    add_origin(response, origin);
    response.set_header("Access-Control-Allow-Methods", any_method_ ? method : methods_);
    if (any_header_ && !wanted.empty()) {
      response.set_header("Access-Control-Allow-Headers", wanted);
    } else if (!any_header_ && !headers_.empty()) {
      response.set_header("Access-Control-Allow-Headers", headers_);
    }
    if (network) response.set_header("Access-Control-Allow-Private-Network", "true");
    response.set_header("Access-Control-Max-Age", max_age_);
  }

  [[nodiscard]] bool allows_headers(std::string_view list) const {
    if (any_header_) return true;
    while (!list.empty()) {
      const std::string_view name = take_item(list, ',');
      const auto same = [name](const std::string& header) { return equals_ignoring_case(header, name); };
      if (!name.empty() && std::ranges::none_of(options_.headers, same)) return false;
    }
    return true;
  }

  const CorsOptions options_;
  const bool any_origin_, any_header_, any_method_;
  const std::string methods_, headers_, exposed_, max_age_;
};

}  // namespace

Middleware cors(CorsOptions options) {
  return [policy = std::make_shared<const Policy>(std::move(options))](Handler next) -> Handler {
    return [policy, next = std::move(next)](Request& request, ResponseWriter& response) {
      if (!policy->handle(request, response)) next(request, response);
    };
  };
}

}  // namespace tuza::http
