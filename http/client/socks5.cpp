#include <tuza/http/client/socks5.h>

#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/errorf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace tuza::http {
namespace {

constexpr char kVersion = 5, kPasswordVersion = 1, kConnect = 1, kReserved = 0;
constexpr char kNoAuthentication = 0, kPassword = 2, kNoMethod = '\xff';
constexpr char kIpv4 = 1, kName = 3, kIpv6 = 4;
constexpr std::size_t kNameMax = 255, kPortBytes = 2;

std::unexpected<Error> violation(std::string_view why) {
  return std::unexpected(Error(Errc::kBadMessage, "socks5", std::string(why)));
}

std::unexpected<Error> denied(const char* why) {
  return std::unexpected(
      Error::from_text(std::make_error_code(std::errc::permission_denied), "socks5: " + std::string(why)));
}

struct Reply {
  const char* text;
  std::errc code;
};
// RFC 1928 6: of the replies 1 to 8.
constexpr std::array<Reply, 8> kReplies{{
    {"general failure", std::errc::io_error},
    {"not allowed by its rules", std::errc::permission_denied},
    {"network unreachable", std::errc::network_unreachable},
    {"host unreachable", std::errc::host_unreachable},
    {"connection refused", std::errc::connection_refused},
    {"TTL expired", std::errc::host_unreachable},
    {"command not supported", std::errc::operation_not_supported},
    {"address type not supported", std::errc::address_family_not_supported},
}};

std::unexpected<Error> refused(unsigned reply) {
  if (reply > kReplies.size()) return violation("unknown reply " + std::to_string(reply));
  const Reply& known = kReplies[reply - 1];
  return std::unexpected(
      Error::from_text(std::make_error_code(known.code), "socks5: " + std::string(known.text)));
}

// One byte of it says how long it is.
void append_counted(std::string& out, std::string_view text) {
  out.append(1, static_cast<char>(text.size())).append(text);
}

void append_address(std::string& out, const net::IpAddress& address) {
  out += address.is_v4() ? kIpv4 : kIpv6;
  const std::span<const std::uint8_t> all(address.bytes());
  for (const std::uint8_t byte : address.is_v4() ? all.last(4) : all) out += static_cast<char>(byte);
}

// Address and port of the URL, looked up here or by the proxy.
Result<std::string> destination(const Context& ctx, const Proxy& proxy, const Url& url) {
  std::string out;
  const std::string address = url.address();
  std::uint16_t port = 0;
  if (Result<net::Endpoint> literal = net::parse_endpoint(address)) {
    append_address(out, literal->address());
    port = literal->port();
  } else if (proxy.kind == Proxy::Kind::kSocks5) {
    const Result<net::Endpoint> endpoint = net::resolve(ctx, address);
    if (!endpoint) return std::unexpected(endpoint.error());
    append_address(out, endpoint->address());
    port = endpoint->port();
  } else {
    const std::string_view host = url.host();
    if (host.size() > kNameMax)
      return std::unexpected(Error(Errc::kBadAddress, "socks5", "a host longer than 255 bytes"));
    out += kName;
    append_counted(out, host);
    port = static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  }
  return out.append({static_cast<char>(port >> 8), static_cast<char>(port & 0xff)});
}

template <std::size_t kSize>
Result<std::array<char, kSize>> read_bytes(const Context& ctx, net::Conn& conn) {
  std::array<char, kSize> bytes{};
  const Result<void> read = conn.read_full(ctx, std::as_writable_bytes(std::span(bytes)));
  if (!read) return std::unexpected(read.error());
  return bytes;
}

Result<void> authenticate(const Context& ctx, net::Conn& conn, const Proxy& proxy) {
  std::string hello{kVersion, 1, kNoAuthentication};
  if (proxy.credentials) hello = {kVersion, 2, kNoAuthentication, kPassword};
  if (Result<void> sent = conn.write_all(ctx, hello); !sent) return sent;
  const auto chosen = read_bytes<2>(ctx, conn);
  if (!chosen) return std::unexpected(chosen.error());
  const auto [version, method] = *chosen;
  if (version != kVersion) return violation("another version, or no SOCKS at all");
  if (method == kNoAuthentication) return {};
  if (method == kNoMethod)
    return denied(proxy.credentials ? "it takes none of our methods" : "it asks for credentials");
  if (method != kPassword || !proxy.credentials) return violation("a method that was not offered");
  std::string message{kPasswordVersion};
  append_counted(message, proxy.credentials->user);
  append_counted(message, proxy.credentials->password);
  if (Result<void> sent = conn.write_all(ctx, message); !sent) return sent;
  const auto status = read_bytes<2>(ctx, conn);
  if (!status) return std::unexpected(status.error());
  if ((*status)[0] != kPasswordVersion) return violation("another version of the password's answer");
  return (*status)[1] == 0 ? Result<void>() : denied("it refuses the credentials");
}

// The address that the proxy has bound means nothing to us.
Result<void> skip_bound_address(const Context& ctx, net::Conn& conn, char type) {
  std::size_t size = type == kIpv4 ? 4 : 16;
  if (type == kName) {
    const auto length = read_bytes<1>(ctx, conn);
    if (!length) return std::unexpected(length.error());
    size = static_cast<unsigned char>((*length)[0]);
  } else if (type != kIpv4 && type != kIpv6) {
    return violation("a reply with an unknown type of address");
  }
  std::array<std::byte, kNameMax + kPortBytes> scrap;
  return conn.read_full(ctx, std::span(scrap).first(size + kPortBytes));
}

}  // namespace

Result<void> connect_by_socks5(const Context& ctx, net::Conn& conn, const Proxy& proxy, const Url& url) {
  const Result<std::string> address = destination(ctx, proxy, url);
  if (!address) return std::unexpected(address.error());
  if (Result<void> known = authenticate(ctx, conn, proxy); !known) return known;
  const std::string request = std::string{kVersion, kConnect, kReserved} + *address;
  if (Result<void> sent = conn.write_all(ctx, request); !sent) return sent;
  const auto reply = read_bytes<4>(ctx, conn);
  if (!reply) return std::unexpected(reply.error());
  const auto [version, code, reserved, type] = *reply;
  if (version != kVersion || reserved != kReserved) return violation("a malformed reply");
  if (code != 0) return refused(static_cast<unsigned char>(code));
  return skip_bound_address(ctx, conn, type);
}

}  // namespace tuza::http
