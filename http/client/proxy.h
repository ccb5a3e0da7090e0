// Which proxy a URL goes through, and what is known about it.
//
// Both are constant while a client lives, and depend on the origin of the URL only. So the pool, whose key is the origin, never
// gives a connection through one proxy to a request that goes through another, or through none.
//
// Thread-safe: constant after construction.
#pragma once

#include <tuza/http/client_proxy.h>
#include <tuza/http/credentials.h>
#include <tuza/http/url.h>
#include <tuza/netpoll/network.h>
#include <tuza/sched/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct Proxy {
  enum class Kind : std::uint8_t { kHttp, kSocks5, kSocks5h };

  Kind kind;
  std::string address;  // for net::dial()
  std::optional<BasicCredentials> credentials;
  std::string authorization{};  // of the credentials: the value of Proxy-Authorization

  // Errc::kBadAddress; the error shows no credentials.
  [[nodiscard]] static Result<Proxy> parse(std::string_view text);
};

class ProxyRules {
 public:
  [[nodiscard]] static Result<ProxyRules> parse(const ProxyOptions& options);

  [[nodiscard]] bool empty() const { return !http_ && !https_; }
  // Null: directly. Valid as long as the rules.
  [[nodiscard]] const Proxy* choose(const Url& url) const;

 private:
  struct Exception {
    std::optional<net::Network> network;
    std::string suffix;   // without a network: ".example.org"; of everyone, empty
    bool itself = false;  // also "example.org"
    std::string port;     // empty: every port
  };
  [[nodiscard]] static Result<Exception> parse_exception(std::string_view text);
  [[nodiscard]] bool is_exception(const Url& url) const;

  std::optional<Proxy> http_, https_;
  std::vector<Exception> exceptions_;
};

}  // namespace tuza::http
