// Public header, part of <tuza/http.h>.
//
// The URLs that a client can ask for: http and https.
//
//     auto url = tuza::http::Url::parse("https://Example.org/a b?q=ü");   // target: "/a%20b?q=%C3%BC"
//     auto next = url->resolve("../c");                                    // where a link leads
//
// Errors: Errc::kBadAddress, with the text and what is wrong with it. Thread-compatible.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>

#include <string>
#include <string_view>

namespace tuza::http {

struct Url {
  bool https = false;
  std::string authority;  // host and port, as in a Host field: in lower case, without the scheme's own port
  std::string target;     // path and query, as in a request: begins with "/"

  // Absolute. A fragment is dropped. What no request may have, such as spaces and bytes above 0x7f, is percent-encoded;
  // escapes stay as they are. Refused are control characters, other schemes, hosts with bytes above 0x7f (names of other
  // scripts are written in punycode), and credentials ("user:password@"), which belong into an Authorization field.
  [[nodiscard]] static Result<Url> parse(std::string_view text);
  // What `reference` means on a page of this URL (RFC 3986 5.2): "../c", "/c", "?d", "//host/", or a whole URL. Read as
  // browsers do: controls and spaces around it and tabs and line ends in it count for nothing, and up to a query "\" is "/",
  // so that "/\host/" leads to another host. Refused is what parse() refuses, and "///host/" and "http:x", which browsers repair.
  [[nodiscard]] Result<Url> resolve(std::string_view reference) const;

  // Errc::kBadAddress for one made by hand whose parts no request may have.
  [[nodiscard]] Result<void> check() const;

  // Without the brackets of an IPv6 address.
  [[nodiscard]] std::string_view host() const;
  // For net::dial(): "example.org:443".
  [[nodiscard]] std::string address() const;
  // "https://example.org": two URLs with the same origin are served by the same party.
  [[nodiscard]] std::string origin() const;
  [[nodiscard]] std::string to_string() const { return origin() + target; }

  bool operator==(const Url&) const = default;
};

// Any text as one segment of a path, "a/b?c" as "a%2Fb%3Fc": all but letters, digits and "-._~" is percent-encoded, and so are
// "." and ".." as a whole. A server may decode these two before it takes dots away: refuse them where that would do harm.
// For a query, Values::encode().
[[nodiscard]] std::string path_escape(std::string_view segment);

}  // namespace tuza::http
