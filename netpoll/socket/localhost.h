// The name that is a loopback address without a query.
#pragma once

#include <algorithm>
#include <string_view>

namespace tuza::net {

// "localhost" and names below it are loopback addresses, whatever the system's files and name servers say (RFC 6761,
// section 6.3).
inline bool is_localhost(std::string_view host) {
  constexpr std::string_view kName = "localhost";
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.size() < kName.size()) return false;
  const std::string_view above = host.substr(0, host.size() - kName.size());
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  };
  return (above.empty() || above.ends_with('.')) &&
         std::ranges::equal(host.substr(above.size()), kName, same);
}

}  // namespace tuza::net
