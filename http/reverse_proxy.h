// Public header, part of <tuza/http.h>.
//
// A handler that passes requests on to other servers, and their answers back.
//
//     tuza::http::ReverseProxy proxy({.upstreams = {"http://10.0.0.1:8080", "http://10.0.0.2:8080"}});
//     router.handle("/api/", proxy);            // "/api/x" is "/api/x" there, too
//     router.mount("/files", proxy);            // "/files/x" is "/x" there
//
// Bodies are passed on as they arrive, both ways, no faster than the other side takes them; so are trailers, event streams and
// upgraded connections such as WebSockets. The rest of a long body goes by splice(2), past this process, if neither side is TLS,
// its length is known, and no middleware wants to see it. Fields that concern one connection only (RFC 9110 7.6.1) are left out,
// in both directions. What the client says of other proxies (Forwarded, X-Forwarded-*, X-Real-IP) is replaced by what this
// server knows: Request::remote(), and real_ip() where trusted proxies stand in front.
//
// A request goes to another upstream if it has reached none, or if nothing of an answer has come and it may be repeated:
// idempotent methods, or an Idempotency-Key, with a body of at most repeatable_bytes_max. An upstream that fails several times in
// a row is left out for a while; then one request finds out. If all are left out, the one that has waited longest is asked.
//
// Without an answer the client gets 502, or 504 after a timeout, or 503 if this process had no descriptor to ask with, which is
// not held against the upstream. An answer that breaks off does so for the client, too.
//
// Thread-safe; copies share everything, and the end of the last one waits for health checks and lookups that are under way. Errors
// of the options are std::invalid_argument.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

enum class Balance : std::uint8_t {
  kRoundRobin,     // by turns
  kLeastRequests,  // the one with the fewest requests in progress; by turns among equal ones
  // The same one for the same key, on all proxies with the same upstreams. One that is left out gives its keys to all others,
  // and gets them back (rendezvous hashing, Thaler and Ravishankar 1998).
  kHash,
};

// How upstreams learn who asks.
enum class ForwardedFields : std::uint8_t {
  // X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host; X-Forwarded-Prefix for what Router::mount() has cut off the path.
  kXForwarded,
  kRfc7239,  // Forwarded
  kNone,
};

// Requests of the proxy's own, by which it learns how an upstream is. One that is not well is asked only if no other is left.
struct HealthCheck {
  std::string path{};  // "/healthz"; empty: no checks
  std::chrono::milliseconds every{5'000};
  std::chrono::milliseconds timeout{2'000};  // for the head of the answer, the connection included
  std::size_t failures_max = 2;              // so many in a row, and the upstream is not well
  std::size_t passes_min = 2;                // so many in a row, and it is
  // Whether an answer is a good one. Must not throw. Otherwise: any status 2xx.
  std::function<bool(const ClientResponse& answer)> passes{};
};

// Why a request was not answered by an upstream.
struct ProxyFailure {
  int status;                 // 502; 504 after a timeout; 503 if this process had no descriptor to ask with
  const Error& error;         // of the last try
  std::string_view upstream;  // as in UpstreamStats; empty: there was none
};

struct ReverseProxyOptions {
  // "http://10.0.0.1:8080", "https://app.internal", without a path; or "unix:/run/app.sock".
  std::vector<std::string> upstreams{};
  // Above 0: a name among them is looked up this often, and each of its addresses is an upstream of its own, with "@" and the
  // address behind its name. While a lookup fails, what was known stays. 0: a name is one upstream, and each connection goes to
  // one of its addresses.
  std::chrono::milliseconds resolve_every{0};
  // Answers instead of the system's resolver: for "app.internal:8080" the addresses, with ports, "10.0.0.1:8080". May park,
  // until the context ends. An exception is an error; what is no address is left out, with a warning in the log. Not called after
  // the end of the proxy.
  using Resolve =
      std::function<Result<std::vector<std::string>>(const Context& ctx, std::string_view host_port)>;
  Resolve resolve{};
  Balance balance = Balance::kRoundRobin;
  // For kHash; empty: the address of the client.
  std::function<std::string(const Request&)> hash_key{};
  std::size_t tries_max = 3;  // of one request, each with another upstream
  // So many requests in a row without an answer, and an upstream is left out for this time. 0: never.
  std::size_t failures_max = 3;
  std::chrono::milliseconds pause{10'000};
  HealthCheck health{};  // from the first request on
  // A body up to this size is received before an upstream is asked; a larger one, and one of unknown length, is passed on as
  // it arrives.
  std::size_t repeatable_bytes_max = 64 << 10;

  ForwardedFields forwarded = ForwardedFields::kXForwarded;
  // This proxy's name in the Via field of requests (RFC 9110 7.6.3), with a random number behind it. By it a request is recognised
  // that goes round in a loop, because an upstream leads back here: it gets 508. Empty: no field, and loops run until something
  // gives out.
  std::string via = "tuza";
  // Fields of a client with "_" in their names reach upstreams. Applications behind CGI or WSGI take them for the same with "-":
  // then a client could add to what `rewrite` sets, and set what it removes.
  bool underscores_in_names = false;
  bool keep_host = true;  // the upstream sees the client's Host field; otherwise that of its own URL

  // Protocols that a client may ask an upstream to go on with (Upgrade); what asks for another one is passed on as a usual
  // request. An upgrade to h2c would lead past every rule of this server: name it only if you want that.
  std::vector<std::string> upgrades{"websocket"};
  // An upgraded connection on which neither side has said anything for this time is closed; at most a quarter later. 0: never.
  std::chrono::milliseconds upgrade_idle_timeout{3'600'000};

  // Changes the request to an upstream, which is complete but for what the client sets itself: `out.set_url()`,
  // `out.set_header()`. Called for each try, behind the removal of the fields of the connection, so that no client can have a
  // field removed that is set here.
  std::function<void(const Request& in, ClientRequest& out)> rewrite{};
  // Before the body is passed back: status and fields of the answer have been set on `out`.
  std::function<void(const ClientResponse& in, ResponseWriter& out)> on_response{};
  // Answers instead of ResponseWriter::error().
  std::function<void(Request&, ResponseWriter&, const ProxyFailure&)> on_failure{};

  // Timeouts, connections and TLS, for each upstream. Whatever it says, redirects and compressed bodies are passed back as
  // they are, and no User-Agent is added.
  ClientOptions client{};
};

struct UpstreamStats {
  std::string name;        // as in the options; behind a name that is looked up, "@" and the address
  bool left_out = false;   // after failures
  bool unhealthy = false;  // by its checks
  std::size_t active = 0;  // requests in progress
  std::uint64_t requests = 0, failures = 0;
  std::uint64_t checks = 0, checks_failed = 0;
  ClientStats client{};
};

class ReverseProxy {
 public:
  explicit ReverseProxy(ReverseProxyOptions options);
  // Parks.
  void operator()(Request& req, ResponseWriter& res) const;
  [[nodiscard]] std::vector<UpstreamStats> stats() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tuza::http
