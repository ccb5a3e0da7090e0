// What a redirect asks for: RFC 9110 15.4.
#pragma once

#include <tuza/http/client/state.h>

#include <string>
#include <string_view>

namespace tuza::http {

[[nodiscard]] bool is_redirect(int status);
// Whether `hop` can be asked for again at another URL: a body from a source is gone.
[[nodiscard]] bool can_redirect(int status, const Hop& hop);
// Changes `hop` to what `status` makes of it at `next`: the method, the body and its fields; and no credentials for another
// origin.
void redirect(int status, Url next, Hop& hop);

}  // namespace tuza::http
