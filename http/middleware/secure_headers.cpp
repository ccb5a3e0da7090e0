#include <tuza/http/middleware/secure_headers.h>

#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>
#include <tuza/netpoll/tls.h>

#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

// The fields as text, since they are the same for each response.
struct SecureLines {
  explicit SecureLines(const SecureHeadersOptions& options) : behind_tls(options.behind_tls) {
    add("X-Content-Type-Options", options.content_type_options);
    add("X-Frame-Options", options.frame_options);
    add("Referrer-Policy", options.referrer_policy);
    add("Content-Security-Policy", options.content_security_policy);
    add("Permissions-Policy", options.permissions_policy);
    add("Cross-Origin-Opener-Policy", options.cross_origin_opener_policy);
    add("Cross-Origin-Resource-Policy", options.cross_origin_resource_policy);
    if (options.hsts_max_age.count() < 0) {
      throw std::invalid_argument("secure_headers(): negative hsts_max_age");
    }
    if (options.hsts_max_age.count() == 0) return;
    hsts = "max-age=" + std::to_string(options.hsts_max_age.count());
    if (options.hsts_include_subdomains) hsts += "; includeSubDomains";
    if (options.hsts_preload) hsts += "; preload";
  }

  void add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (has_control_char(value)) {
      throw std::invalid_argument("secure_headers(): control character in " + std::string(name));
    }
    append_field_line(text, name, value);
  }

  // Whether one of `fields` is one of these.
  [[nodiscard]] bool doubles(HeaderLines fields) const {
    for (const HeaderField field : fields) {
      for (const HeaderField own : HeaderLines(text)) {
        if (equals_ignoring_case(field.name, own.name)) return true;
      }
    }
    return false;
  }

  std::string text, hsts;
  bool behind_tls;
};

}  // namespace

Middleware secure_headers(const SecureHeadersOptions& options) {
  return [lines = std::make_shared<const SecureLines>(options)](Handler next) -> Handler {
    return [lines, next = std::move(next)](Request& request, ResponseWriter& response) {
      if (response.head_sent() || lines->doubles(response.headers())) {
        for (const HeaderField field : HeaderLines(lines->text)) {
          response.set_header(field.name, field.value);
        }
      } else {
        request.exchange().buffers().extra += lines->text;
      }
      if (!lines->hsts.empty() && (lines->behind_tls || request.tls_info())) {
        response.set_header("Strict-Transport-Security", lines->hsts);
      }
      next(request, response);
    };
  };
}

}  // namespace tuza::http
