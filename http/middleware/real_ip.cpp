#include <tuza/http/middleware/real_ip.h>

#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/only_header.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/network.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

// One hop, as a proxy has noted it. The views are of the request's head.
struct NotedHop {
  std::string_view address{}, proto{}, host{};
};

// Addresses and hosts need no quoted pairs; one that has some is no address.
NotedHop parse_forwarded(std::string_view item) {
  NotedHop hop;
  while (!item.empty()) {
    const std::string_view pair = take_item(item, ';');
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = unquoted(pair.substr(std::min(equals + 1, pair.size())));
    if (equals_ignoring_case(name, "for")) hop.address = value;
    if (equals_ignoring_case(name, "proto")) hop.proto = value;
    if (equals_ignoring_case(name, "host")) hop.host = value;
  }
  return hop;
}

// X-Forwarded-For has no quotes.
std::string_view take_last_address(std::string_view& list) {
  const std::size_t comma = list.rfind(',');
  const std::string_view item = list.substr(comma == std::string_view::npos ? 0 : comma + 1);
  list = list.substr(0, comma == std::string_view::npos ? 0 : comma);
  return trim(item);
}

// The last proxy's first, the client's last. Empty items are skipped.
std::vector<NotedHop> hops_of(const Request& request, ForwardedHeader kind) {
  const bool standard = kind == ForwardedHeader::kForwarded;
  const std::string_view name = standard ? "Forwarded" : "X-Forwarded-For";
  std::vector<std::string_view> lists;
  for (const HeaderField field : request.headers()) {
    if (equals_ignoring_case(field.name, name)) lists.push_back(field.value);
  }
  std::vector<NotedHop> hops;
  for (std::string_view list : lists | std::views::reverse) {
    while (!list.empty()) {
      const std::string_view item = standard ? take_last_item(list, ',') : take_last_address(list);
      if (!item.empty()) hops.push_back(standard ? parse_forwarded(item) : NotedHop{.address = item});
    }
  }
  return hops;
}

// "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". A zone is the proxy's own matter.
std::optional<net::Endpoint> parse_hop(std::string_view text) {
  if (text.contains('%')) return std::nullopt;
  const bool brackets = text.starts_with('[');
  const bool has_port = brackets ? !text.ends_with(']') : std::ranges::count(text, ':') == 1;
  if (has_port) {
    const Result<net::Endpoint> endpoint = net::parse_endpoint(text);
    if (!endpoint || text.starts_with(':')) return std::nullopt;
    return net::Endpoint(endpoint->address().unmapped(), endpoint->port());
  }
  if (brackets) text = text.substr(1, text.size() - 2);
  const Result<net::IpAddress> address = net::IpAddress::parse(text);
  return address ? std::optional(net::Endpoint(address->unmapped(), 0)) : std::nullopt;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 255 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._:[]").contains(c);
  });
}

class Trust {
 public:
  explicit Trust(const RealIpOptions& options) : header_(options.header) {
    if (options.trusted.empty()) throw std::invalid_argument("real_ip(): no trusted networks");
    for (const std::string& text : options.trusted) {
      Result<net::Network> network = net::Network::parse(text);
      if (!network) throw std::invalid_argument("real_ip(): " + network.error().message());
      networks_.push_back(*std::move(network));
    }
  }

  void apply(Request& request) const {
    const Result<net::Endpoint> direct = request.remote_endpoint();
    const std::optional<net::Endpoint> peer = direct ? std::optional(*direct) : std::nullopt;
    if (!net::any_contains(networks_, peer)) return;
    const std::vector<NotedHop> hops = hops_of(request, header_);
    const NotedHop* from = nullptr;  // what is known of the client
    std::optional<net::Endpoint> client;
    for (const NotedHop& hop : hops) {
      const std::optional<net::Endpoint> next = parse_hop(hop.address);
      if (!next) break;
      client = next;
      from = &hop;
      if (!net::any_contains(networks_, client)) break;
    }
    if (client) request.exchange().set_client(*client);
    request.set(kForwarded, described(request, from));
  }

 private:
  [[nodiscard]] Forwarded described(const Request& request, const NotedHop* hop) const {
    std::string_view proto, host;
    if (header_ == ForwardedHeader::kXForwardedFor) {
      proto = only_header(request, "X-Forwarded-Proto").value_or("");
      host = only_header(request, "X-Forwarded-Host").value_or("");
    } else if (hop != nullptr) {
      proto = hop->proto;
      host = hop->host;
    }
    Forwarded forwarded;
    if (equals_ignoring_case(proto, "https")) forwarded.proto = "https";
    if (equals_ignoring_case(proto, "http")) forwarded.proto = "http";
    if (is_host(host)) forwarded.host = host;
    return forwarded;
  }

  const ForwardedHeader header_;
  std::vector<net::Network> networks_;
};

}  // namespace

Middleware real_ip(const RealIpOptions& options) {
  return [trust = std::make_shared<const Trust>(options)](Handler next) -> Handler {
    return [trust, next = std::move(next)](Request& request, ResponseWriter& response) {
      trust->apply(request);
      next(request, response);
    };
  };
}

}  // namespace tuza::http
