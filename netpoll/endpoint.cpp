#include <tuza/netpoll/endpoint.h>

#include <netinet/in.h>
#include <tuza/netpoll/socket/localhost.h>
#include <tuza/netpoll/socket/resolve_for.h>
#include <tuza/netpoll/socket/resolve_query.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

struct HostPort {
  std::string host;
  std::uint16_t port;
};

std::unexpected<Error> bad_address(std::string_view text, const char* why) {
  return std::unexpected(Error(Errc::kBadAddress, "parse host:port", std::string(text) + ": " + why));
}

Result<HostPort> split(std::string_view text) {
  // The lower layers take C strings: they would ignore everything after a zero byte.
  if (text.find('\0') != std::string_view::npos) return bad_address(text, "a zero byte");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return bad_address(text, "no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error == std::errc::result_out_of_range) return bad_address(text, "port out of range");
  if (error != std::errc{} || end != digits.data() + digits.size())
    return bad_address(text, "the port is no number");
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // An IPv6 address must be in brackets: in "::1:80" the port cannot be told from the address. Nothing else
  // may be in brackets: "[]:80" is not a valid form of "every address".
  if (bracketed != (host.find(':') != std::string_view::npos))
    return bad_address(text, "an IPv6 address, and nothing else, must be in brackets");
  return HostPort{std::string(host), port};
}

std::optional<Endpoint> from_address(const HostPort& parts) {
  if (parts.host.empty()) return Endpoint(IpAddress::any_v6(), parts.port);
  const Result<IpAddress> address = IpAddress::parse(parts.host);
  if (!address) return std::nullopt;
  return Endpoint(*address, parts.port);
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view host_port) {
  const Result<HostPort> parts = split(host_port);
  if (!parts) return std::unexpected(parts.error());
  const std::optional<Endpoint> endpoint = from_address(*parts);
  if (!endpoint) return bad_address(host_port, "the host is no IP address");
  return *endpoint;
}

namespace {

// Only a query waits for `ctx`.
Result<std::vector<Endpoint>> endpoints_of(const Context& ctx, std::string_view host_port, int family) {
  Result<HostPort> parts = split(host_port);
  if (!parts) return std::unexpected(parts.error());
  if (const std::optional<Endpoint> endpoint = from_address(*parts)) return std::vector{*endpoint};
  if (!is_localhost(parts->host)) {
    return query_resolver(ctx, {std::move(parts->host), parts->port, family, std::string(host_port)});
  }
  return std::vector{Endpoint(IpAddress::loopback_v4(), parts->port),
                     Endpoint(IpAddress::loopback_v6(), parts->port)};
}

}  // namespace

Result<std::vector<Endpoint>> resolve_all(const Context& ctx, std::string_view host_port) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  return endpoints_of(ctx, host_port, AF_UNSPEC);
}

Result<std::vector<Endpoint>> resolve_all(std::string_view host_port) {
  return resolve_all(Context::background(), host_port);
}

Result<Endpoint> resolve(const Context& ctx, std::string_view host_port) {
  const Result<std::vector<Endpoint>> all = resolve_all(ctx, host_port);
  if (!all) return std::unexpected(all.error());
  return all->front();
}

Result<Endpoint> resolve(std::string_view host_port) { return resolve(Context::background(), host_port); }

Result<std::vector<Endpoint>> resolve_for(const Context& ctx, std::string_view network,
                                          std::string_view address) {
  const bool any = network == "tcp";
  if (!any && network != "tcp4" && network != "tcp6") {
    return std::unexpected(Error::from_errno(EPROTONOSUPPORT, "network", std::string(network)));
  }
  const bool v6 = network == "tcp6";
  Result<std::vector<Endpoint>> all = endpoints_of(ctx, address, any ? AF_UNSPEC : v6 ? AF_INET6 : AF_INET);
  if (!all) return all;
  for (Endpoint& endpoint : *all) endpoint = unmapped(endpoint);
  if (any) return all;
  Endpoint& first = all->front();
  if (!v6 && first.address().is_unspecified()) first = Endpoint(IpAddress::any_v4(), first.port());
  std::erase_if(*all, [v6](const Endpoint& e) { return e.address().is_v6() != v6; });
  if (all->empty()) return std::unexpected(Error::from_errno(EAFNOSUPPORT, "network", std::string(address)));
  return all;
}

Result<std::vector<Endpoint>> resolve_to_dial(const Context& ctx, std::string_view network,
                                              std::string_view address) {
  Result<std::vector<Endpoint>> all = resolve_for(ctx, network, address);
  if (!all) return all;
  std::vector<Endpoint> targets;
  for (const Endpoint& endpoint : *all) {
    if (!endpoint.address().is_unspecified()) {
      targets.push_back(endpoint);
      continue;
    }
    const Endpoint v4(IpAddress::loopback_v4(), endpoint.port());
    const Endpoint v6(IpAddress::loopback_v6(), endpoint.port());
    // "[::]:80" is also the address of a listener of IPv6 alone; ":80" is what "localhost:80" is.
    const bool v6_first = !address.starts_with(':');
    if (endpoint.address().is_v4()) {
      targets.push_back(v4);
    } else if (network == "tcp6") {
      targets.push_back(v6);
    } else {
      targets.insert(targets.end(), {v6_first ? v6 : v4, v6_first ? v4 : v6});
    }
  }
  return targets;
}

std::string to_string(const Endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

std::ostream& operator<<(std::ostream& out, const Endpoint& endpoint) { return out << to_string(endpoint); }

socklen_t to_sockaddr(const Endpoint& endpoint, struct sockaddr_storage& name) {
  const auto fill = [&name](const auto& filled) {
    std::memcpy(&name, &filled, sizeof filled);
    return static_cast<socklen_t>(sizeof filled);
  };
  name = {};
  const IpAddress& address = endpoint.address();
  if (address.is_v4()) {
    struct sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port());
    std::memcpy(&v4.sin_addr, address.v4_bytes().data(), sizeof v4.sin_addr);
    return fill(v4);
  }
  struct sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port());
  v6.sin6_scope_id = address.zone();
  std::memcpy(&v6.sin6_addr, address.bytes().data(), sizeof v6.sin6_addr);
  return fill(v6);
}

std::optional<Endpoint> from_sockaddr(const struct sockaddr* name, socklen_t length) {
  const auto copied = [name, length](auto& to) {
    if (length < sizeof to) return false;
    std::memcpy(&to, name, sizeof to);
    return true;
  };
  if (struct sockaddr_in v4{}; name->sa_family == AF_INET && copied(v4)) {
    IpAddress::V4Bytes bytes{};
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return Endpoint(IpAddress(bytes), ntohs(v4.sin_port));
  }
  if (struct sockaddr_in6 v6{}; name->sa_family == AF_INET6 && copied(v6)) {
    IpAddress::V6Bytes bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return Endpoint(IpAddress(bytes, v6.sin6_scope_id), ntohs(v6.sin6_port));
  }
  return std::nullopt;
}

}  // namespace tuza::net
