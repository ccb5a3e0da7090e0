// Public header, part of <tuza/http.h>.
//
// The credentials of a request (Authorization, RFC 7617 and RFC 6750), and how to compare secrets.
//
//     const auto who = req.basic_auth();
//     if (!who || !http::constant_time_equal(who->password, password_of(who->user))) {
//       res.set_header("WWW-Authenticate", R"(Basic realm="notes", charset="UTF-8")");
//       return res.error(401);
//     }
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

struct BasicCredentials {
  std::string user, password;  // as sent: UTF-8, by the clients of today
};

// Of the value of an Authorization field; nullopt for another scheme, or malformed ones. Control characters are malformed.
[[nodiscard]] std::optional<BasicCredentials> parse_basic_auth(std::string_view field);
// The value of such a field. Throws std::invalid_argument for a user with a colon, and for control characters in either of them.
[[nodiscard]] std::string basic_auth(std::string_view user, std::string_view password);
// A part of `field`.
[[nodiscard]] std::optional<std::string_view> parse_bearer_token(std::string_view field);

// Takes the same time wherever two texts of the same length differ. Their lengths do not stay secret; compare hashes if
// they must.
[[nodiscard]] bool constant_time_equal(std::string_view a, std::string_view b);

}  // namespace tuza::http
