// What the requests of one client share: options, connections, counters.
//
// Thread-safe.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/client/pool.h>
#include <tuza/http/client/proxy.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/sync/mutex.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

class MiddlewareChain;

// One request of a call: the first, or one that a redirect asks for.
struct Hop {
  ClientRequest& request;
  Method method;
  bool with_body;
  bool asks_first;           // "Expect: 100-continue"
  std::string_view upgrade;  // protocols, or none
  bool offers_codings;       // the client decodes what it has offered to
  // What differs from the request's.
  std::optional<std::string> own_fields{};
  std::optional<Url> own_url{};
  const Proxy* proxy{};  // null: directly to the server of the URL

  // Middleware may have made another one of it.
  [[nodiscard]] bool can_repeat_body() const { return request.can_repeat_body(); }
  [[nodiscard]] const Url& url() const { return own_url ? *own_url : *request.url_; }
  // Lines "Name: value\r\n".
  [[nodiscard]] const std::string& fields() const { return own_fields ? *own_fields : request.fields_; }

  // By an HTTP proxy, to which an upgrade would be addressed then: upgrades go through a tunnel (RFC 6455 4.1).
  [[nodiscard]] bool forwarded() const {
    return proxy != nullptr && proxy->kind == Proxy::Kind::kHttp && !url().https && upgrade.empty();
  }
};

// The deadline, or the end of a limit that begins now, of which 0 is none.
inline net::TimePoint sooner(net::TimePoint deadline, std::chrono::milliseconds limit) {
  return limit.count() == 0 ? deadline : std::min(deadline, net::time_after_now(limit));
}

// The error, behind the method and the URL that it belongs to.
[[nodiscard]] Error error_of_request(Method method, const Url& url, const Error& error);

class ClientState : public std::enable_shared_from_this<ClientState> {
 public:
  explicit ClientState(ClientOptions options);

  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] ClientPool& pool() { return *pool_; }
  [[nodiscard]] ClientStats stats() const;

  // As Client::send().
  [[nodiscard]] Result<ClientResponse> send(const Context& ctx, ClientRequest& request);

  // -- For MiddlewareChain.
  // Errc::kBadAddress for a URL that cannot be asked for.
  [[nodiscard]] static Result<void> check(const ClientRequest& request);
  [[nodiscard]] Hop hop_of(ClientRequest& request) const;
  [[nodiscard]] Result<ClientResponse> once(const Context& ctx, net::TimePoint deadline, const Hop& hop);

 private:
  // `chain`: null without middleware.
  [[nodiscard]] Result<ClientResponse> follow(const Context& ctx, net::TimePoint deadline, Hop hop,
                                              MiddlewareChain* chain);
  [[nodiscard]] Result<ClientResponse> send_through_middleware(const Context& ctx, net::TimePoint deadline,
                                                               ClientRequest& request);
  [[nodiscard]] Result<ClientPool::Lease> connect(const Context& ctx, net::TimePoint deadline, const Hop& hop,
                                                  bool fresh, bool& kept);
  [[nodiscard]] Result<void> fill(const Context& ctx, net::TimePoint deadline, const Hop& hop,
                                  ClientPool::Lease& lease, bool fresh, bool& kept);
  [[nodiscard]] Result<void> dial(const Context& ctx, net::TimePoint deadline, const Hop& hop,
                                  ClientPool::Lease& lease);
  [[nodiscard]] Result<std::optional<Url>> next_of(const Hop& hop, const ClientResponse& response,
                                                   std::size_t redirects) const;
  [[nodiscard]] std::string dialled_address(const Hop& hop) const;  // for errors
  [[nodiscard]] Result<net::Conn> dial_plain(const Context& ctx, const Hop& hop) const;
  [[nodiscard]] Result<std::shared_ptr<net::TlsClient>> tls();

  const ClientOptions options_;
  const ProxyRules proxies_;
  const std::shared_ptr<ClientPool> pool_;
  Mutex tls_mutex_;
  std::shared_ptr<net::TlsClient> tls_;  // null before the first https request
  std::atomic<std::uint64_t> dialled_{0}, requests_{0}, repeated_{0};
};

}  // namespace tuza::http
