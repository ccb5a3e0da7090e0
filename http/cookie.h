// Public header, part of <tuza/http.h>.
//
// Cookies, RFC 6265bis: what a response sets, and what a request brings.
//
//     res.set_cookie({.name = "theme", .value = "dark", .max_age = 24h * 365, .secure = true});
//     const auto theme = req.cookie("theme");                           // the client may have invented it
//
// A value that the client must not invent is signed: http/cookie_signer.h.
#pragma once

#include <tuza/http/header_range.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

// kUnset: the browser decides. kNone needs `secure`.
enum class SameSite : std::uint8_t { kUnset, kLax, kStrict, kNone };

// The defaults are the careful ones: for the whole site, out of reach of scripts, not sent by requests that other sites
// start, except links. Set `secure` wherever the site has TLS.
struct Cookie {
  std::string name;
  std::string value{};
  std::string path = "/";  // empty: the folder of the request
  std::string domain{};    // empty: this host only, which is narrower than naming it
  // Without either the cookie ends with the browser. `max_age` takes precedence; zero or less deletes the cookie.
  std::optional<std::chrono::seconds> max_age{};
  std::optional<std::chrono::sys_seconds> expires{};
  bool secure = false;
  bool http_only = true;
  SameSite same_site = SameSite::kLax;
  bool partitioned = false;  // a jar for each top-level site (CHIPS); needs `secure`
};

// The value of Set-Cookie. Throws std::invalid_argument if browsers would refuse or misread the cookie: a name that is no
// token; a value with anything but printable ASCII without space, quotes, comma, semicolon and backslash; more than 4,096
// bytes of both; a path, domain or date that cannot be; an attribute that needs `secure`; "__Secure-" without `secure`;
// "__Host-" without `secure`, with a domain or with a path other than "/".
[[nodiscard]] std::string to_set_cookie(const Cookie& cookie);

// The cookies of a request, in the order sent: a range of HeaderField. Pairs without "=" are skipped. Values are as sent;
// quotes are a part of them. A name may occur several times: a subdomain can set cookies for its parent domain.
class RequestCookies {
 public:
  class iterator {
   public:
    using value_type = HeaderField;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    [[nodiscard]] HeaderField operator*() const { return pair_; }
    iterator& operator++() {
      advance();
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      advance();
      return before;
    }
    bool operator==(const iterator& other) const {
      return field_ == other.field_ && pair_.name.data() == other.pair_.name.data();
    }

   private:
    friend class RequestCookies;
    iterator(ReceivedHeaders::iterator field, ReceivedHeaders::iterator end) : field_(field), end_(end) {}
    void advance();
    ReceivedHeaders::iterator field_, end_;
    std::string_view left_;  // of the field before field_
    HeaderField pair_;
  };

  explicit RequestCookies(const ReceivedHeaders& headers) : headers_(headers) {}
  [[nodiscard]] iterator begin() const { return ++iterator(headers_.begin(), headers_.end()); }
  [[nodiscard]] iterator end() const { return {headers_.end(), headers_.end()}; }

 private:
  ReceivedHeaders headers_;
};

static_assert(std::forward_iterator<RequestCookies::iterator>);

namespace detail {
// Takes the next pair off the value of a Cookie field; a name without data: there is none.
[[nodiscard]] HeaderField next_cookie(std::string_view& list);
}  // namespace detail

}  // namespace tuza::http
