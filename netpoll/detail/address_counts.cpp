#include <tuza/netpoll/detail/address_counts.h>

#include <asio/ip/address.hpp>

namespace tuza::net {
namespace {

// The network of an IPv6 address; an IPv4 address in the range for documentation, 2001:db8::/32, which no client has.
std::uint64_t key_of(const asio::ip::address& address) {
  constexpr std::uint64_t kDocumentation = 0x2001'0db8'0000'0000;
  if (address.is_v4()) return kDocumentation | address.to_v4().to_uint();
  const asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return kDocumentation | asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_uint();
  std::uint64_t network = 0;
  const asio::ip::address_v6::bytes_type bytes = v6.to_bytes();
  for (std::size_t i = 0; i < sizeof network; ++i) network = network << 8 | bytes[i];
  return network;
}

}  // namespace

std::optional<AddressCounts::Held> AddressCounts::try_hold(const Endpoint& client) {
  if (most_ == 0) return Held();
  const std::uint64_t key = key_of(client.address());
  const LockGuard lock(mutex_);
  std::size_t& open = open_[key];
  if (open >= most_) return std::nullopt;
  ++open;
  return Held(*this, key);
}

void AddressCounts::clear() {
  const LockGuard lock(mutex_);
  open_.clear();
}

void AddressCounts::release(std::uint64_t key) {
  const LockGuard lock(mutex_);
  const auto found = open_.find(key);
  if (--found->second == 0) open_.erase(found);
}

}  // namespace tuza::net
