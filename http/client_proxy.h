// Public header, part of <tuza/http.h>.
//
// The proxies of a client: servers that its connections go through.
//
//     tuza::http::Client office({.proxy = {.http = "http://proxy.example:3128", .https = "http://proxy.example:3128"}});
//     tuza::http::Client usual({.proxy = tuza::http::proxies_from_environment().value()});
//
// "http://user:password@host:port": plain requests are forwarded by the proxy; https, and requests for an upgrade, go through a
// tunnel (CONNECT).
// "socks5://...": a tunnel for both, to an address that this machine looks up; "socks5h://...": the proxy looks it up. User and
// password may be percent-encoded; a text without a scheme is "http://". Ports: 80, or 1080 of SOCKS. TLS to the proxy itself
// is not spoken.
//
// A proxy that opens no tunnel is an error of the call, with what it has answered: std::errc::permission_denied, it wants other
// credentials; of SOCKS5 also connection_refused, host_unreachable and others, as a direct connection would fail;
// Errc::kBadMessage, it does not speak its protocol; Errc::kOther, another status of HTTP.
//
// Thread-compatible.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>

#include <string>

namespace tuza::http {

struct ProxyOptions {
  std::string http{};   // for http:// URLs; empty: none
  std::string https{};  // for https:// URLs; empty: none
  // Who is asked directly, separated by commas: "example.org" (and all names below it), ".example.org" (only those below it),
  // "10.1.2.3", "10.0.0.0/8", "fd00::/8" (bits behind the prefix do not count); a host or an address with a port,
  // "example.org:8080", "[::1]:80", counts for that port only; "*": everyone.
  std::string except{};
  // Whether localhost and loopback addresses are asked through the proxy, too.
  bool loopback = false;
};

// Of http_proxy, https_proxy and no_proxy, or else of the same names in capitals. HTTP_PROXY does not count in a CGI program,
// that is, if REQUEST_METHOD is set: there it is a Proxy field of the request (CVE-2016-5385). ALL_PROXY is not read.
// Errc::kBadAddress, with the name of the variable, for a proxy that a Client would refuse; it does not show passwords. Entries of
// no_proxy that a Client would refuse are left out, with a warning in the log. Reads the environment: not while another thread
// changes it.
[[nodiscard]] Result<ProxyOptions> proxies_from_environment();

}  // namespace tuza::http
