// Public header, part of <tuza/http.h>.
//
// HTTP Basic authentication (RFC 7617): name and password with each request. Use it over TLS only.
//
//     admin.use(tuza::http::basic_auth({.realm = "admin", .users = {{"ada", password}}}));
//     admin.use(tuza::http::basic_auth({.realm = "admin", .check = [&](auto user, auto password) { ... }}));
//
//     const std::string& user = *req.get(tuza::http::kBasicUser);
//
// Other requests get 401 with a challenge. Names and passwords of the list are compared in a time that does not depend on
// them: neither which names exist nor how much of a password is right can be measured. A `check` of your own should hash
// passwords slowly, and for unknown names too.
#pragma once

#include <tuza/http/key.h>
#include <tuza/http/middleware.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {

inline constexpr Key<std::string> kBasicUser;

struct BasicAuthOptions {
  std::string realm = "restricted";
  std::vector<std::pair<std::string, std::string>> users{};  // names and passwords
  // Instead of `users`. May park; must be thread-safe.
  std::function<bool(std::string_view user, std::string_view password)> check{};
};

// Throws std::invalid_argument if there are neither users nor a check, or both, if a name contains ":", or if the realm has
// a control character.
[[nodiscard]] Middleware basic_auth(BasicAuthOptions options);

}  // namespace tuza::http
