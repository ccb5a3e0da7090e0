#include <tuza/netpoll/detail/address_counts.h>

#include <span>

namespace tuza::net {
namespace {

// The network of an IPv6 address; an IPv4 address in the range for documentation, 2001:db8::/32, which no client has.
std::uint64_t key_of(const IpAddress& address) {
  constexpr std::uint64_t kDocumentation = 0x2001'0db8;
  const IpAddress client = address.unmapped();
  std::uint64_t key = client.is_v4() ? kDocumentation : 0;
  const std::span<const std::uint8_t> all(client.bytes());
  for (const std::uint8_t byte : client.is_v4() ? all.last(4) : all.first(8)) key = key << 8 | byte;
  return key;
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
