// An origin as browsers write it (RFC 6454 6.1): what a list of origins has to say in order to be found by comparison.
#pragma once

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tuza::http {

// "https://example.com:8443": in lower case, without the scheme's own port, and without a slash.
inline bool is_origin(std::string_view text) {
  const auto lower_or_digit = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return false;
  const auto in_scheme = [&](char c) { return lower_or_digit(c) || c == '+' || c == '-' || c == '.'; };
  if (!std::ranges::all_of(text.substr(0, scheme), in_scheme)) return false;
  std::string_view host = text.substr(scheme + 3);
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    const std::string_view port = host.substr(colon + 1);
    const bool digits = std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
    const bool usual =
        (text.starts_with("http:") && port == "80") || (text.starts_with("https:") && port == "443");
    if (port.empty() || port.size() > 5 || port.starts_with('0') || !digits || usual) return false;
    host = host.substr(0, colon);
  }
  const bool address = host.starts_with('[') && host.ends_with(']');  // of IPv6
  if (address) host = host.substr(1, host.size() - 2);
  const auto in_host = [&](char c) {
    return lower_or_digit(c) || c == '-' || c == '.' || c == '_' || (address && c == ':');
  };
  return !host.empty() && std::ranges::all_of(host, in_host);
}

}  // namespace tuza::http
