// The form of a host with an optional port, as Host fields and URLs have it.
#pragma once

#include <string_view>

namespace tuza::http {

// RFC 3986 3.2.2: a name, an IPv4 address, or an IPv6 address in brackets; an optional port of digits.
bool is_host_and_port(std::string_view text);

}  // namespace tuza::http
