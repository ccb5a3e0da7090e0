// What a redirect asks for: RFC 9110 15.4.
#pragma once

#include <tuza/http/client/state.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace tuza::http {

[[nodiscard]] bool is_redirect(int status);
// Whether `hop` can be asked for again at another URL: a body from a source is gone.
[[nodiscard]] bool can_redirect(int status, const Hop& hop);
// Changes `hop` to what `status` makes of it at `next`: the method, the body and its fields; and no credentials for another
// origin.
void redirect(int status, Url next, Hop& hop);

// "ws:" is "http:" with an upgrade, and "wss:" "https:" (RFC 6455 3). Other URLs as they are.
[[nodiscard]] std::string without_upgrade(std::string_view url);

// Lines "Name: value\r\n" without those of these names.
[[nodiscard]] std::string without_fields(std::string_view lines,
                                         std::initializer_list<std::string_view> names);

}  // namespace tuza::http
