// Public header, part of <tuza/net.h>.
//
// An address of IPv4 or IPv6, without a port.
//
//     const auto address = tuza::net::IpAddress::parse("2001:db8::1");
//     if (address && address->is_loopback()) ...
//
// ::ffff:10.1.2.3, which is how a socket of IPv6 calls 10.1.2.3, is another address than 10.1.2.3 here; unmapped() makes
// it the same. The addresses that Conn reports are unmapped.
//
// Thread-safe: a value.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

namespace tuza::net {

class IpAddress {
 public:
  using V4Bytes = std::array<std::uint8_t, 4>;
  using V6Bytes = std::array<std::uint8_t, 16>;

  // 0.0.0.0
  constexpr IpAddress() = default;
  // In the order in which they are written.
  constexpr explicit IpAddress(const V4Bytes& bytes) { std::ranges::copy(bytes, bytes_.begin() + kV4At); }
  // `zone`: the number of the interface to which a link-local address belongs; 0: none.
  constexpr explicit IpAddress(const V6Bytes& bytes, std::uint32_t zone = 0)
      : v6_(true), bytes_(bytes), zone_(zone) {}

  static constexpr IpAddress any_v4() { return IpAddress(); }
  static constexpr IpAddress any_v6() { return IpAddress(V6Bytes{}); }
  static constexpr IpAddress loopback_v4() { return IpAddress(V4Bytes{127, 0, 0, 1}); }
  static constexpr IpAddress loopback_v6() {
    return IpAddress(V6Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  }

  // "192.0.2.1", "2001:db8::1", "fe80::1%eth0". Errc::kBadAddress for other texts, names among them.
  [[nodiscard]] static Result<IpAddress> parse(std::string_view text);

  [[nodiscard]] constexpr bool is_v4() const { return !v6_; }
  [[nodiscard]] constexpr bool is_v6() const { return v6_; }
  // 0.0.0.0 or [::]: as an address to listen on, every address of this machine.
  [[nodiscard]] constexpr bool is_unspecified() const { return *this == any_v4() || *this == any_v6(); }
  // 127.0.0.0/8 or ::1
  [[nodiscard]] constexpr bool is_loopback() const {
    return v6_ ? *this == loopback_v6() : bytes_[kV4At] == 127;
  }
  // In ::ffff:0:0/96
  [[nodiscard]] constexpr bool is_v4_mapped() const {
    return v6_ && std::ranges::equal(std::span(bytes_).first(kV4At), kMapped);
  }
  // If it is mapped, the address of IPv4; otherwise the same.
  [[nodiscard]] constexpr IpAddress unmapped() const {
    IpAddress result = *this;
    if (is_v4_mapped()) {
      result.v6_ = false;
      result.zone_ = 0;
    }
    return result;
  }

  // In the order in which they are written; of IPv4 as ::ffff:a.b.c.d.
  [[nodiscard]] constexpr const V6Bytes& bytes() const& { return bytes_; }
  [[nodiscard]] constexpr V6Bytes bytes() && { return bytes_; }
  // The last four of these: the address, if it is of IPv4.
  [[nodiscard]] constexpr V4Bytes v4_bytes() const {
    V4Bytes bytes;
    std::ranges::copy(std::span(bytes_).last<4>(), bytes.begin());
    return bytes;
  }
  // 0: none.
  [[nodiscard]] constexpr std::uint32_t zone() const { return zone_; }

  // As parse() takes it.
  [[nodiscard]] std::string to_string() const;
  friend std::ostream& operator<<(std::ostream& out, const IpAddress& address);

  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;
  friend constexpr std::strong_ordering operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  static constexpr std::size_t kV4At = 12;
  static constexpr std::array<std::uint8_t, kV4At> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

  bool v6_ = false;
  V6Bytes bytes_{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  std::uint32_t zone_ = 0;
};

}  // namespace tuza::net
