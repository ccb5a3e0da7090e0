#include <tuza/netpoll/proxy_protocol.h>

#include <sys/socket.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/transport.h>
#include <tuza/sched/arch/calls.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace tuza::net {
namespace {

using Parsed = Result<std::optional<ProxyHeader>>;

Parsed bad(const char* what) { return std::unexpected(Error(Errc::kBadMessage, "PROXY header", what)); }
Parsed incomplete() { return std::nullopt; }

constexpr std::string_view kBegin1 = "PROXY ";
constexpr std::size_t kLineMax = 107;  // of version 1, CRLF included
constexpr std::string_view kBegin2("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kFixed2 = 16;  // of version 2: signature, version and command, family, length

unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }
unsigned number_at(std::string_view text, std::size_t at) {
  return byte_at(text, at) << 8 | byte_at(text, at + 1);
}

// -- Version 1.

// Takes the text before the next space.
std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return port;
}

std::optional<Endpoint> parse_peer(bool v6, std::string_view address, std::string_view port) {
  const std::optional<std::uint16_t> number = parse_port(port);
  // A zone is no part of an address on the wire.
  if (!number || address.find('%') != std::string_view::npos) return std::nullopt;
  const Result<IpAddress> parsed = IpAddress::parse(address);
  if (!parsed || parsed->is_v6() != v6) return std::nullopt;
  return Endpoint(*parsed, *number);
}

Parsed parse_line(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kLineMax).find("\r\n");
  if (end == std::string_view::npos) {
    return bytes.size() < kLineMax ? incomplete() : bad("a line without an end");
  }
  ProxyHeader header{.bytes = end + 2, .client = {}, .destination = {}, .unix_client = {}};
  std::string_view rest = bytes.substr(0, end);
  take_word(rest);  // PROXY
  const std::string_view family = take_word(rest);
  if (family == "UNKNOWN") return header;  // whatever follows is to be ignored
  if (family != "TCP4" && family != "TCP6") return bad("neither TCP4 nor TCP6 nor UNKNOWN");
  const std::string_view source = take_word(rest), destination = take_word(rest),
                         source_port = take_word(rest);
  header.client = parse_peer(family == "TCP6", source, source_port);
  header.destination = parse_peer(family == "TCP6", destination, rest);
  if (!header.client || !header.destination) return bad("malformed addresses");
  return header;
}

// -- Version 2.

std::uint32_t crc32c(std::uint32_t crc, std::string_view text) {
  constexpr std::uint32_t kReversedPolynomial = 0x82f6'3b78;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
  }
  return crc;
}

// Whether the fields behind the addresses, which begin at `at`, end where the header ends, and the checksum among them, if
// there is one, is right. The checksum is that of the header with zeros in its place.
bool are_fields_sound(std::string_view header, std::size_t at) {
  constexpr unsigned kTypeCrc32c = 3;
  constexpr std::size_t kHead = 3, kChecksum = 4;
  while (at < header.size()) {
    if (header.size() - at < kHead) return false;
    const std::size_t length = number_at(header, at + 1);
    const bool is_checksum = byte_at(header, at) == kTypeCrc32c;
    at += kHead;
    if (length > header.size() - at) return false;
    if (is_checksum) {
      if (length != kChecksum) return false;
      const std::uint32_t said = number_at(header, at) << 16 | number_at(header, at + 2);
      std::uint32_t crc = crc32c(0xffff'ffff, header.substr(0, at));
      crc = crc32c(crc, std::string_view("\0\0\0\0", kChecksum));
      if (~crc32c(crc, header.substr(at + kChecksum)) != said) return false;
    }
    at += length;
  }
  return true;
}

template <class Bytes>
Endpoint endpoint_at(std::string_view header, std::size_t address, std::size_t port) {
  Bytes bytes{};
  std::memcpy(bytes.data(), header.data() + address, bytes.size());
  return {IpAddress(bytes), static_cast<std::uint16_t>(number_at(header, port))};
}

Parsed parse_addresses(std::string_view header, unsigned family) {
  constexpr unsigned kUnspecified = 0x00, kTcp4 = 0x11, kTcp6 = 0x21, kUnixStream = 0x31;
  constexpr std::size_t kBytes4 = 12, kBytes6 = 36, kBytesUnix = 216, kPathMax = 108;
  ProxyHeader parsed{.bytes = header.size(), .client = {}, .destination = {}, .unix_client = {}};
  std::size_t bytes = 0;
  switch (family) {
    case kUnspecified: return parsed;  // whatever follows is to be ignored
    case kTcp4: bytes = kBytes4; break;
    case kTcp6: bytes = kBytes6; break;
    case kUnixStream: bytes = kBytesUnix; break;
    default: return bad("a family that a stream cannot have");
  }
  if (header.size() < kFixed2 + bytes) return bad("too short for its addresses");
  if (!are_fields_sound(header, kFixed2 + bytes)) return bad("malformed fields, or a wrong checksum");
  if (family == kTcp4) {
    parsed.client = endpoint_at<IpAddress::V4Bytes>(header, kFixed2, kFixed2 + 8);
    parsed.destination = endpoint_at<IpAddress::V4Bytes>(header, kFixed2 + 4, kFixed2 + 10);
  } else if (family == kTcp6) {
    parsed.client = endpoint_at<IpAddress::V6Bytes>(header, kFixed2, kFixed2 + 32);
    parsed.destination = endpoint_at<IpAddress::V6Bytes>(header, kFixed2 + 16, kFixed2 + 34);
  } else {
    // A name that begins with a zero byte has no file; it is written with "@".
    std::string path(header.substr(kFixed2, kPathMax));
    const bool abstract = path.front() == '\0' && path.size() > 1 && path[1] != '\0';
    if (abstract) path.front() = '@';
    parsed.unix_client = path.substr(0, path.find('\0'));
  }
  return parsed;
}

Parsed parse_binary(std::string_view bytes) {
  if (bytes.size() > 12 && byte_at(bytes, 12) >> 4 != 2) return bad("not version 2");
  constexpr unsigned kLocal = 0, kProxy = 1;
  const unsigned command = bytes.size() > 12 ? byte_at(bytes, 12) & 15 : kLocal;
  if (command > kProxy) return bad("neither LOCAL nor PROXY");
  if (bytes.size() < kFixed2) return incomplete();
  const std::size_t size = kFixed2 + number_at(bytes, 14);
  if (size > kProxyHeaderBytesMax) return bad("too long");
  if (bytes.size() < size) return incomplete();
  // The proxy speaks for itself; family and addresses are to be ignored.
  if (command == kLocal)
    return ProxyHeader{.bytes = size, .client = {}, .destination = {}, .unix_client = {}};
  return parse_addresses(bytes.substr(0, size), byte_at(bytes, 13));
}

}  // namespace

Result<std::optional<ProxyHeader>> parse_proxy_header(std::string_view bytes) {
  const auto begins = [bytes](std::string_view with) {
    const std::size_t n = std::min(bytes.size(), with.size());
    return bytes.substr(0, n) == with.substr(0, n);
  };
  if (begins(kBegin1)) return bytes.size() < kBegin1.size() ? incomplete() : parse_line(bytes);
  if (begins(kBegin2)) return bytes.size() < kBegin2.size() ? incomplete() : parse_binary(bytes);
  return bad("neither version 1 nor version 2");
}

Result<ProxyHeader> receive_proxy_header(Conn& conn) {
  Descriptor& descriptor = detail::ConnParts::descriptor(conn);
  std::array<char, kProxyHeaderBytesMax> bytes;
  std::size_t have = 0;
  SocketStandIn* memory = detail::ConnParts::transport(conn) == nullptr
                              ? nullptr
                              : detail::ConnParts::transport(conn)->stand_in();
  const auto receive = [&bytes, &have, memory](int fd, std::size_t n, int flags) -> long {
    if (memory != nullptr) return memory->receive(std::span(bytes.data() + have, n), flags != MSG_PEEK);
    return sys::recvfrom(fd, bytes.data() + have, n, flags, nullptr, nullptr);
  };
  for (;;) {
    // Looked at first, and then taken: what is behind the header is for others.
    const Result<long> seen = descriptor.retry(Descriptor::Side::kRead, "read PROXY header", [&](int fd) {
      return receive(fd, bytes.size() - have, MSG_PEEK);
    });
    if (!seen) return std::unexpected(seen.error());
    if (*seen == 0) return std::unexpected(Error(Errc::kEndOfStream, "read PROXY header"));
    const std::size_t in_all = have + static_cast<std::size_t>(*seen);
    Result<std::optional<ProxyHeader>> parsed = parse_proxy_header({bytes.data(), in_all});
    if (!parsed) return std::unexpected(parsed.error());
    const std::size_t wanted = *parsed ? (*parsed)->bytes : in_all;
    const Result<long> taken =
        descriptor.control("read PROXY header", [&](int fd) { return receive(fd, wanted - have, 0); });
    if (!taken) return std::unexpected(taken.error());
    have += static_cast<std::size_t>(*taken);
    if (!*parsed) continue;
    conn.set_client(**parsed);
    return **std::move(parsed);
  }
}

}  // namespace tuza::net
