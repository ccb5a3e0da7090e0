// The Via field (RFC 9110 7.6.3): by it a proxy tells those behind it that it is there, and recognises a request that comes back
// to it.
//
// A request that comes back may be meant: another path, and another upstream. One that comes back again and again goes round in
// a loop, which takes two connections for each round until there are none left.
//
// Thread-safe.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/request.h>

#include <array>
#include <string>
#include <string_view>

namespace tuza::http {

class Via {
 public:
  // A random number behind `name` keeps this proxy apart from others. Empty: adds nothing, and recognises nothing. Throws
  // std::invalid_argument if `name` is no token.
  explicit Via(std::string_view name);

  // Whether the request is going round in a loop: it has come back to this proxy too many times.
  [[nodiscard]] bool loops(const Request& req) const;
  void add(const Request& in, ClientRequest& out) const;

 private:
  std::string name_;
  std::array<std::string, 2> entries_;  // for a request of HTTP/1.0, and of 1.1
};

}  // namespace tuza::http
