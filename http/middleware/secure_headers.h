// Public header, part of <tuza/http.h>.
//
// Header fields that make browsers careful. An empty text leaves a field out; a handler may replace or remove any.
//
//     app.use(tuza::http::secure_headers({.content_security_policy = "default-src 'self'"}));
//
// Strict-Transport-Security is sent over TLS only (RFC 6797 7.2), or behind a proxy that ends TLS, if `behind_tls` says so.
// It binds browsers for its whole time: serve all names over TLS first, and begin with a short time.
#pragma once

#include <tuza/http/middleware.h>

#include <chrono>
#include <string>

namespace tuza::http {

struct SecureHeadersOptions {
  std::string content_type_options = "nosniff";  // X-Content-Type-Options
  std::string frame_options = "DENY";            // X-Frame-Options
  std::string referrer_policy = "strict-origin-when-cross-origin";
  std::string content_security_policy{};  // depends on the page: none by default
  std::string permissions_policy{};
  std::string cross_origin_opener_policy = "same-origin";
  std::string cross_origin_resource_policy = "same-origin";
  std::chrono::seconds hsts_max_age = std::chrono::days(180);  // 0: no Strict-Transport-Security
  bool hsts_include_subdomains = false;
  bool hsts_preload = false;
  bool behind_tls = false;  // the connection is not TLS, but the client's is
};

// Throws std::invalid_argument if a text has a control character, or hsts_max_age is negative.
[[nodiscard]] Middleware secure_headers(const SecureHeadersOptions& options = {});

}  // namespace tuza::http
