// Public header, part of <tuza/net.h>.
//
// The PROXY protocol, versions 1 and 2, as HAProxy specifies it (doc/proxy-protocol.txt): a proxy that passes bytes on tells
// the server in front of the first one who the client is.
//
//     PROXY TCP4 203.0.113.7 192.0.2.10 54102 443\r\n         version 1; version 2 is binary
//
// Servers do it by ServeOptions::proxy_protocol. A program with an accept loop of its own:
//
//     if (!any_contains(proxies, conn.remote_endpoint())) return;     // anybody could write such a line
//     conn.set_read_deadline(tuza::net::time_after_now(5s));
//     if (auto header = tuza::net::receive_proxy_header(conn); !header) return;
//     conn.set_read_deadline(tuza::net::kNoDeadline);
//     log(conn.remote_address());                                     // 203.0.113.7:54102
//
// Every byte is checked, and a header is never guessed: a connection has to begin with one. Of the fields behind the
// addresses in version 2 (TLVs) the checksum is checked, if there is one; the others are skipped.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::net {

class Conn;

// What a server expects at the beginning of a connection.
enum class ProxyProtocol : std::uint8_t {
  kOff,
  kRequired,  // a header, before TLS
};

struct ProxyHeader {
  std::size_t bytes = 0;  // of the header
  // Who has connected to the proxy, and to which address of the proxy. Neither, if the proxy speaks for itself (LOCAL: a
  // health check), or does not know (UNKNOWN, UNSPEC), or if the client has used a Unix socket.
  std::optional<Endpoint> client, destination;
  // The client's Unix socket, usually without a name, and so "".
  std::optional<std::string> unix_client;
};

// A longer header is refused. The specification allows 64 KiB; 536 bytes are enough for addresses, and fields of TLS
// (a certificate's name) seldom make it longer than 1 KiB.
inline constexpr std::size_t kProxyHeaderBytesMax = 4096;

// The header at the beginning of `bytes`. nullopt: more bytes are needed. Errc::kBadMessage: this is no header, whatever
// follows. A pure function.
[[nodiscard]] Result<std::optional<ProxyHeader>> parse_proxy_header(std::string_view bytes);

// Reads the header from an accepted connection from which nothing has been read, up to the header's last byte; a TLS
// handshake comes after that. From then on remote_endpoint() and remote_address() are the client's. Within the read
// deadline. Errors: Errc::kBadMessage, Errc::kEndOfStream, and those of Conn::read(). Parks.
[[nodiscard]] Result<ProxyHeader> receive_proxy_header(Conn& conn);

}  // namespace tuza::net
