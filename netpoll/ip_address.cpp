#include <tuza/netpoll/ip_address.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <charconv>
#include <optional>
#include <ostream>

namespace tuza::net {
namespace {

// The number of an interface: by its name, or as digits; nullopt if there is no such interface.
std::optional<std::uint32_t> parse_zone(const std::string& text) {
  if (const unsigned number = ::if_nametoindex(text.c_str()); number != 0) return number;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string zone_text(std::uint32_t zone) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(zone, name.data()) != nullptr ? std::string(name.data()) : std::to_string(zone);
}

}  // namespace

Result<IpAddress> IpAddress::parse(std::string_view text) {
  const auto bad = [text] {
    return std::unexpected(Error(Errc::kBadAddress, "parse address", std::string(text)));
  };
  // The C library would ignore everything behind a zero byte.
  if (text.find('\0') != std::string_view::npos) return bad();
  const std::size_t percent = text.find('%');
  const std::string address(text.substr(0, percent));
  if (V4Bytes bytes{};
      percent == std::string_view::npos && ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) {
    return IpAddress(bytes);
  }
  V6Bytes bytes{};
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return bad();
  if (percent == std::string_view::npos) return IpAddress(bytes);
  const std::optional<std::uint32_t> zone = parse_zone(std::string(text.substr(percent + 1)));
  if (!zone) return bad();
  return IpAddress(bytes, *zone);
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!v6_) return ::inet_ntop(AF_INET, v4_bytes().data(), text.data(), text.size());
  std::string result = ::inet_ntop(AF_INET6, bytes_.data(), text.data(), text.size());
  if (zone_ != 0) result += '%' + zone_text(zone_);
  return result;
}

std::ostream& operator<<(std::ostream& out, const IpAddress& address) { return out << address.to_string(); }

}  // namespace tuza::net
