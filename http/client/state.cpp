#include <tuza/http/client/state.h>

#include <tuza/http/client/exchange.h>
#include <tuza/http/client/middleware_chain.h>
#include <tuza/http/client/proxy_dial.h>
#include <tuza/http/client/redirect.h>
#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/clock.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

// Reading this much of a redirect's body is cheaper than another connection, and waiting this long for it.
constexpr std::size_t kSkippedMax = 64 << 10;
constexpr std::chrono::milliseconds kSkippingMax{250};
constexpr std::string_view kProxyAuthorization = "Proxy-Authorization";

ClientOptions checked(ClientOptions options) {
  if (options.headers_max > kHeadersLimit)
    throw std::invalid_argument("http::ClientOptions: headers_max is above " + std::to_string(kHeadersLimit));
  if (options.decompress_ratio_max == 0)
    throw std::invalid_argument("http::ClientOptions: decompress_ratio_max is at least 1");
  return options;
}

ProxyRules proxy_rules(const ClientOptions& options) {
  Result<ProxyRules> rules = ProxyRules::parse(options.proxy);
  if (!rules) throw std::invalid_argument("http::ClientOptions: " + rules.error().message());
  if (!rules->empty() && (options.dial || options.dial_tls || !options.address.empty()))
    throw std::invalid_argument("http::ClientOptions: a proxy together with address, dial or dial_tls");
  return *std::move(rules);
}

// A Range counts bytes of the coded body (RFC 9110 14.1), of which a part cannot be decoded.
bool may_offer_codings(const ClientRequest& request) {
  return request.method() != Method::kHead && !request.header("Accept-Encoding") && !request.header("Range");
}

// The key is of a draft that many services know.
bool may_be_repeated(const Hop& hop) {
  return hop.can_repeat_body() &&
         (is_idempotent(hop.method) || HeaderLines(hop.fields()).find("Idempotency-Key"));
}

// Where an HTTP proxy forwards requests, a tunnel is another connection, although to the same origin.
ClientPool::OriginView origin_of(const Hop& hop) {
  return {.https = hop.url().https,
          .tunnel = hop.proxy != nullptr && !hop.url().https && !hop.upgrade.empty(),
          .authority = hop.url().authority};
}

// A kept connection may already be gone. That does little harm to a request that can be sent again.
ClientPool::Idle idle_for(const Hop& hop, bool fresh) {
  if (fresh) return ClientPool::Idle::kNone;
  return may_be_repeated(hop) ? ClientPool::Idle::kReported : ClientPool::Idle::kAsked;
}

Result<ClientPool::Lease> take_place(ClientPool& pool, const Context& ctx, net::TimePoint deadline,
                                     const Hop& hop, bool fresh) {
  if (deadline == net::kNoDeadline) return pool.take(ctx, origin_of(hop), idle_for(hop, fresh));
  const auto limited = with_deadline(ctx, deadline);
  return pool.take(limited.ctx(), origin_of(hop), idle_for(hop, fresh));
}

Error redirect_error(const char* what) {
  return Error::from_text(make_error_code(Errc::kBadMessage), std::string("follow redirect: ").append(what));
}

void skip_body(ClientResponse& response) {
  if (response.exchange().body_remaining() > kSkippedMax) return;
  response.exchange().hurry(kSkippingMax);
  std::array<std::byte, 4096> scrap;
  for (std::size_t skipped = 0; skipped < kSkippedMax;) {
    const Result<std::size_t> n = response.exchange().read_received(scrap);
    if (!n || *n == 0) return;
    skipped += *n;
  }
}

}  // namespace

ClientState::ClientState(ClientOptions options)
    : options_(checked(std::move(options))),
      proxies_(proxy_rules(options_)),
      pool_(std::make_shared<ClientPool>(ClientPool::Limits{.per_origin = options_.connections_per_origin_max,
                                                            .in_all = options_.connections_max,
                                                            .idle_per_origin = options_.idle_per_origin_max,
                                                            .idle_in_all = options_.idle_max,
                                                            .idle_timeout = options_.idle_timeout})) {}

ClientStats ClientState::stats() const {
  const ClientPool::Counts counts = pool_->counts();
  return {.open = counts.open,
          .idle = counts.idle,
          .waiting = counts.waiting,
          .dialled = dialled_.load(std::memory_order_relaxed),
          .requests = requests_.load(std::memory_order_relaxed),
          .repeated = repeated_.load(std::memory_order_relaxed)};
}

Result<void> ClientState::check(const ClientRequest& request) {
  if (!request.url_) return std::unexpected(request.url_.error());
  return request.url_->check();
}

Hop ClientState::hop_of(ClientRequest& request) const {
  const bool with_body = request.has_body();
  std::optional<std::string> fields;
  if (!proxies_.empty() && request.header(kProxyAuthorization))
    fields = without_fields(request.fields_, {kProxyAuthorization});
  return {.request = request,
          .method = request.method_,
          .with_body = with_body,
          .asks_first =
              with_body && request.expects_continue_ && (request.has_source() || !request.text().empty()),
          .upgrade = request.upgrade_,
          .offers_codings = options_.decompress && may_offer_codings(request),
          .own_fields = std::move(fields),
          .proxy = proxies_.choose(*request.url_)};
}

Error error_of_request(Method method, const Url& url, const Error& error) {
  return errorf("{} {}: {}", name(method), url.to_string(), error);
}

Result<ClientResponse> ClientState::send(const Context& ctx, ClientRequest& request) {
  request.sent_ = false;
  request.got_place_ = true;
  if (Result<void> sound = check(request); !sound) return std::unexpected(sound.error());
  const net::TimePoint deadline = sooner(net::kNoDeadline, options_.timeout);
  return options_.middleware.empty() ? follow(ctx, deadline, hop_of(request), nullptr)
                                     : send_through_middleware(ctx, deadline, request);
}

Result<ClientResponse> ClientState::send_through_middleware(const Context& ctx, net::TimePoint deadline,
                                                            ClientRequest& request) {
  MiddlewareChain chain(*this, ctx, deadline, request);
  Result<ClientResponse> response = follow(ctx, deadline, hop_of(request), &chain);
  chain.finish(response);
  return response;
}

// Where the answer leads; nullopt if the client is not to follow it.
Result<std::optional<Url>> ClientState::next_of(const Hop& hop, const ClientResponse& response,
                                                std::size_t redirects) const {
  if (options_.redirects_max == 0 || !is_redirect(response.status())) return std::nullopt;
  const std::optional<std::string_view> location = response.header("Location");
  if (!location || !can_redirect(response.status(), hop)) return std::nullopt;
  Result<Url> next =
      hop.url().resolve(hop.upgrade.empty() ? std::string(*location) : without_upgrade(*location));
  // It is asked about what can be followed: the rest is a response to it.
  if (options_.allow_redirect && (!next || !options_.allow_redirect(*next, response))) return std::nullopt;
  if (!next) return std::unexpected(errorf("follow redirect: {}", next.error()));
  if (redirects == options_.redirects_max) return std::unexpected(redirect_error("too many redirects"));
  // What follows an upgrade is not asked for anew: it would go on in plain text for good.
  if (!hop.upgrade.empty() && hop.url().https && !next->https)
    return std::unexpected(redirect_error("an upgrade from https to http"));
  return *std::move(next);
}

// Errors name the hop that has failed.
Result<ClientResponse> ClientState::follow(const Context& ctx, net::TimePoint deadline, Hop hop,
                                           MiddlewareChain* chain) {
  const auto failed = [&hop](const Error& error) {
    return std::unexpected(error_of_request(hop.method, hop.url(), error));
  };
  for (std::size_t redirects = 0;; ++redirects) {
    Result<ClientResponse> response = chain != nullptr ? chain->pass(hop) : once(ctx, deadline, hop);
    if (!response) return failed(response.error());
    Result<std::optional<Url>> next = next_of(hop, *response, redirects);
    if (!next) return failed(next.error());
    if (!*next) return response;
    skip_body(*response);
    redirect(response->status(), **std::move(next), hop);
    hop.proxy = proxies_.choose(hop.url());
  }
}

Result<ClientResponse> ClientState::once(const Context& ctx, net::TimePoint deadline, const Hop& hop) {
  for (bool fresh = false;; fresh = true) {
    bool kept = false;
    Result<ClientPool::Lease> lease = connect(ctx, deadline, hop, fresh, kept);
    if (!lease) return std::unexpected(lease.error());
    ClientResponse response(ClientExchange::take());
    ClientExchange& exchange = response.exchange();
    exchange.begin(shared_from_this(), ctx, deadline);
    requests_.fetch_add(1, std::memory_order_relaxed);
    const Result<void> done = exchange.run(*std::move(lease), hop);
    if (done) return response;
    const bool gone = kept && !exchange.answered() && !done.error().timeout() && !ctx.done();
    if (!gone || !may_be_repeated(hop)) return std::unexpected(done.error());
    repeated_.fetch_add(1, std::memory_order_relaxed);
  }
}

// `kept`: whether the connection has served a request before.
Result<ClientPool::Lease> ClientState::connect(const Context& ctx, net::TimePoint deadline, const Hop& hop,
                                               bool fresh, bool& kept) {
  Result<ClientPool::Lease> lease = take_place(*pool_, ctx, deadline, hop, fresh);
  hop.request.got_place_ = lease.has_value();
  if (!lease) return lease;
  if (Result<void> filled = fill(ctx, deadline, hop, *lease, fresh, kept); !filled)
    return std::unexpected(filled.error());
  return lease;
}

// A place without a connection, or with one that is not wanted, is dialled for. Without a descriptor for that, it waits until
// others need theirs no longer.
Result<void> ClientState::fill(const Context& ctx, net::TimePoint deadline, const Hop& hop,
                               ClientPool::Lease& lease, bool fresh, bool& kept) {
  std::optional<CancellableContext> patience;
  for (;;) {
    if (fresh && lease.has_conn()) lease.drop_conn();
    kept = lease.has_conn();
    if (kept) return {};
    Result<void> dialled = dial(ctx, deadline, hop, lease);
    if (dialled || !net::is_out_of_resources(dialled.error())) return dialled;
    if (!patience) patience.emplace(with_deadline(ctx, sooner(deadline, options_.dial_timeout)));
    const Result<bool> room = lease.wait_for_room(patience->ctx());
    if (!room && (ctx.done() || deadline <= now())) return std::unexpected(room.error());
    if (!room || !*room) return dialled;
  }
}

Result<net::Conn> ClientState::dial_plain(const Context& ctx, const Hop& hop) const {
  constexpr std::string_view kUnix = "unix:";
  if (hop.proxy != nullptr) return dial_through(ctx, *hop.proxy, hop.url(), hop.forwarded());
  if (options_.dial) return options_.dial(ctx, hop.url());
  const std::string_view address = options_.address;
  if (address.empty()) return net::dial(ctx, "tcp", hop.url().address());  // a host may be named "unix"
  return address.starts_with(kUnix) ? net::dial(ctx, "unix", address.substr(kUnix.size()))
                                    : net::dial(ctx, "tcp", address);
}

std::string ClientState::dialled_address(const Hop& hop) const {
  if (hop.proxy != nullptr) return hop.url().address() + " through a proxy";
  const bool own = options_.address.empty() || options_.dial || (hop.url().https && options_.dial_tls);
  return own ? hop.url().address() : options_.address;
}

Result<void> ClientState::dial(const Context& ctx, net::TimePoint deadline, const Hop& hop,
                               ClientPool::Lease& lease) {
  const auto limited = with_deadline(ctx, sooner(deadline, options_.dial_timeout));
  const Url& url = hop.url();
  dialled_.fetch_add(1, std::memory_order_relaxed);
  const bool encrypted = url.https && options_.dial_tls;
  const char* phase = "dial";
  Result<net::Conn> conn = encrypted ? options_.dial_tls(limited.ctx(), url) : dial_plain(limited.ctx(), hop);
  if (conn && url.https && !encrypted) {
    phase = "tls handshake";
    Result<std::shared_ptr<net::TlsClient>> client = tls();
    if (!client) return std::unexpected(client.error());
    const std::string& name = options_.tls.server_name;
    conn = (*client)->start(limited.ctx(), *std::move(conn), name.empty() ? url.host() : name);
  }
  // The time of this client, not the caller's context.
  if (!conn && conn.error().timeout() && limited.ctx().done() && !ctx.done())
    return std::unexpected(Error(Errc::kTimeout, phase, dialled_address(hop)));
  if (!conn) return std::unexpected(conn.error());
  const bool tls = encrypted ? conn->tls_info().has_value() : url.https;
  lease.set_conn(*std::move(conn), tls);
  return {};
}

Result<std::shared_ptr<net::TlsClient>> ClientState::tls() {
  const std::scoped_lock lock(tls_mutex_);
  if (tls_ != nullptr) return tls_;
  net::TlsClientOptions options = options_.tls;
  options.alpn = {"http/1.1"};
  auto loaded = net::TlsClient::load(std::move(options));
  if (loaded) tls_ = *loaded;
  return loaded;
}

}  // namespace tuza::http
