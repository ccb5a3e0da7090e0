// The fields of a message that a proxy passes on, and what it adds about the client.
//
// Thread-safe.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/header_range.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/reverse_proxy.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

// The fields that concern one connection only (RFC 9110 7.6.1): those that always do, and those that Connection names. Also
// those that each side sets itself, because it delimits the body: Content-Length, Expect.
class HopFields {
 public:
  explicit HopFields(const ReceivedHeaders& headers);
  [[nodiscard]] bool contains(std::string_view name) const;
  // Connection has "upgrade".
  [[nodiscard]] bool upgrades() const { return upgrades_; }
  // Connection has "TE", as it must where TE says something (RFC 9110 10.1.4).
  [[nodiscard]] bool names_te() const { return names_te_; }

 private:
  static bool always(std::string_view name);

  std::vector<std::string_view> named_;  // usually none
  bool upgrades_ = false, names_te_ = false;
};

// Of the protocols that Upgrade lists (RFC 9110 7.8), those that are among `known`, as a list; empty: none.
[[nodiscard]] std::string protocols_among(const ReceivedHeaders& headers, std::span<const std::string> known);
// "192.0.2.1:80" and "[2001:db8::1]:80", without the port. Empty for the peer of a Unix socket.
[[nodiscard]] std::string_view address_of(std::string_view peer);
// A field in which a client or another proxy may have said who asks. Also with "_" for "-": gateways to applications (CGI, WSGI)
// take both for the same.
[[nodiscard]] bool says_who_asks(std::string_view name);
// Whether a client may say that to an upstream. `underscores`: also in a name.
[[nodiscard]] bool may_pass(std::string_view name, bool underscores);
// All but those; not Host, and nothing that says who the client is.
void pass_fields(const Request& in, const HopFields& hop, ClientRequest& out, bool underscores);
void pass_fields(const ClientResponse& in, Exchange& out);
// A field whose value a parser has accepted, or this server has made: it needs no second look.
void add_known_field(ClientRequest& out, std::string_view name, std::string_view value);
// Who the client is, as this server knows it.
void add_forwarded(const Request& in, ForwardedFields kind, ClientRequest& out);

}  // namespace tuza::http
