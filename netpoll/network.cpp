#include <tuza/netpoll/network.h>

#include <algorithm>
#include <charconv>

namespace tuza::net {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr unsigned kMappedBits = 96;  // ::ffff:0:0/96
constexpr unsigned kAllBits = 128;

// Decimal digits without a leading zero, which some read as octal.
std::optional<unsigned> parse_prefix(std::string_view text, unsigned most) {
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc() || end != text.data() + text.size() || bits > most) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return bits;
}

}  // namespace

Result<Network> Network::parse(std::string_view text) { return parse(text, false); }
Result<Network> Network::parse_masked(std::string_view text) { return parse(text, true); }

Result<Network> Network::parse(std::string_view text, bool masks) {
  const auto bad = [text] {
    return std::unexpected(Error(Errc::kBadAddress, "parse network", std::string(text)));
  };
  Network network;
  if (text == kUnix) {
    network.unix_ = true;
    return network;
  }
  const std::size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  // A zone ("fe80::1%eth0") names an interface, not a network.
  if (host.find('%') != std::string_view::npos) return bad();
  const Result<IpAddress> address = IpAddress::parse(host);
  if (!address) return bad();
  const unsigned before = address->is_v4() ? kMappedBits : 0;
  unsigned bits = kAllBits;
  if (slash != std::string_view::npos) {
    const std::optional<unsigned> given = parse_prefix(text.substr(slash + 1), kAllBits - before);
    if (!given) return bad();
    bits = before + *given;
  }
  network.bytes_ = address->bytes();
  network.prefix_bits_ = static_cast<std::uint8_t>(bits);
  for (unsigned at = bits; at < kAllBits; ++at) {
    std::uint8_t& byte = network.bytes_[at / 8];
    const unsigned bit = 0x80U >> at % 8;  // bit 0 of an address is the highest of its first byte
    if ((byte & bit) != 0 && !masks) return bad();
    byte &= static_cast<std::uint8_t>(~bit);
  }
  return network;
}

bool Network::contains(const IpAddress& address) const {
  if (unix_) return false;
  const IpAddress::V6Bytes& bytes = address.bytes();
  const std::size_t whole = prefix_bits_ / 8;
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes_.begin())) {
    return false;
  }
  const unsigned rest = prefix_bits_ % 8;
  return rest == 0 || (bytes[whole] ^ bytes_[whole]) >> (8 - rest) == 0;
}

std::string Network::text() const {
  if (unix_) return std::string(kUnix);
  const IpAddress address(bytes_);
  const unsigned before = address.is_v4_mapped() && prefix_bits_ >= kMappedBits ? kMappedBits : 0;
  return (before != 0 ? address.unmapped() : address).to_string() + "/" +
         std::to_string(prefix_bits_ - before);
}

bool any_contains(std::span<const Network> networks, const std::optional<Endpoint>& peer) {
  return std::ranges::any_of(networks, [&](const Network& network) { return network.contains(peer); });
}
bool any_contains(std::span<const Network> networks, const IpAddress& address) {
  return std::ranges::any_of(networks, [&](const Network& network) { return network.contains(address); });
}

}  // namespace tuza::net
