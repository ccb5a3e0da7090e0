#include <tuza/http/wire/host.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>

namespace tuza::http {
namespace {

// RFC 3986 3.2.2: an IPv6 address; RFC 6874: behind it "%25" and the zone that it is valid in.
bool is_ipv6(std::string_view text) {
  const std::size_t percent = std::min(text.find('%'), text.size());
  const std::string_view address = text.substr(0, percent);
  const bool digits = std::all_of(address.begin(), address.end(),
                                  [](char c) { return is(c, kHexDigit) || c == ':' || c == '.'; });
  if (!digits || address.size() < 2) return false;
  if (percent == text.size()) return true;
  constexpr std::string_view kZone = "%25";
  if (!text.substr(percent).starts_with(kZone) || text.size() == percent + kZone.size()) return false;
  for (std::size_t i = percent + kZone.size(); i < text.size(); ++i) {
    const bool escape = is_percent_escape(text, i);
    if (!escape && (!is(text[i], kHostChar) || std::string_view("!$&'()*+;=").contains(text[i])))
      return false;
    if (escape) i += 2;
  }
  return true;
}

}  // namespace

// Each request costs this: short loops.
bool is_host_and_port(std::string_view text) {
  std::size_t end = 0;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos || !is_ipv6(text.substr(1, bracket - 1))) return false;
    end = bracket + 1;
  } else {
    for (;; end += 3) {
      while (end < text.size() && is(text[end], kHostChar)) ++end;
      if (!is_percent_escape(text, end)) break;
    }
  }
  if (end == text.size()) return true;
  const std::string_view port = text.substr(end + 1);
  return text[end] == ':' && port.size() <= 5 &&
         std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace tuza::http
