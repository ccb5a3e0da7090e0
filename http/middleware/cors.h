// Public header, part of <tuza/http.h>.
//
// Lets pages of other origins use this server: Cross-Origin Resource Sharing, as https://fetch.spec.whatwg.org defines it.
//
//     app.use(tuza::http::cors({.origins = {"https://app.example.com"}, .methods = {"GET", "PUT"}, .credentials = true}));
//
// Preflights (OPTIONS with Origin and Access-Control-Request-Method) are answered here with 204, and reach no handler.
// All other requests do, with the fields for the origin added to the response: CORS tells browsers which answers a page
// may see; it refuses no request. See csrf() for that.
//
// Install it around the router (App::use(), Router::use()): OPTIONS must reach it.
#pragma once

#include <tuza/http/middleware.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct CorsOptions {
  // "https://app.example.com", exactly as browsers send it; "null" for sandboxed pages; "*": any, without credentials.
  std::vector<std::string> origins{};
  // Asked for origins that are not in the list.
  std::function<bool(std::string_view origin)> allow_origin{};
  std::vector<std::string> methods{"GET", "HEAD", "POST"};
  // Request fields besides those that pages may always send; "*": any, with credentials too (the asked ones are repeated).
  std::vector<std::string> headers{"Content-Type"};
  std::vector<std::string> exposed{};  // response fields that a page may read
  bool credentials = false;            // cookies, client certificates, Authorization
  bool private_network = false;        // pages of public networks may reach this server in a private one
  std::chrono::seconds max_age = std::chrono::minutes(10);  // of a preflight; 0: not cached
};

// Throws std::invalid_argument if credentials and "*" are combined, or a text cannot stand in a field.
[[nodiscard]] Middleware cors(CorsOptions options);

}  // namespace tuza::http
