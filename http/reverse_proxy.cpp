#include <tuza/http/reverse_proxy.h>

#include <tuza/http/client/body_splicer.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/proxy/background.h>
#include <tuza/http/proxy/pass_back.h>
#include <tuza/http/proxy/passed_fields.h>
#include <tuza/http/proxy/upstreams.h>
#include <tuza/http/proxy/via.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/field_lists.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>
#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/sched/log.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

// As nginx calls it. The client has gone and does not see it, but logs and metrics do.
constexpr int kClientClosedRequest = 499;

// For as long as the answer is passed back, too: balancing by requests counts those.
class Active {
 public:
  explicit Active(Upstream& upstream) : upstream_(upstream) {
    upstream_.active.fetch_add(1, std::memory_order_relaxed);
    upstream_.requests.fetch_add(1, std::memory_order_relaxed);
  }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  ~Active() { upstream_.active.fetch_sub(1, std::memory_order_relaxed); }

 private:
  Upstream& upstream_;
};

std::string target_of(const Request& req) {
  if (req.mount_path().empty() && req.target().starts_with('/')) return std::string(req.target());
  std::string target(req.path());
  const std::string_view whole = req.target();
  return target.append(whole.substr(std::min(whole.find('?'), whole.size())));
}

// The message names the URL, whose query may hold secrets.
std::string without_query(std::string text) {
  const std::size_t end = text.find(": "), query = text.find('?');
  if (end != text.npos && query < end) text.replace(query + 1, end - query - 1, "***");
  return text;
}

void log_failure(std::string_view upstream, const Error& error) {
  static LogLimiter limiter(10);
  std::string line = "tuza: no answer of upstream " + std::string(upstream) + ": ";
  detail::append_log_escaped(line, without_query(error.message()).substr(0, 1000));
  limiter.log(LogLevel::kWarning, line);
}

void log_loop(const Request& req) {
  static LogLimiter limiter(1);
  std::string line = "tuza: a request goes round in a loop, because an upstream leads back to its proxy: ";
  detail::append_log_escaped(line, req.target().substr(0, 1000));
  limiter.log(LogLevel::kError, line);
}

// RFC 9110 7.6.2: how many servers more a request may be passed on to. nullopt: as many as there are.
std::optional<std::uint32_t> forwards_left(const Request& req) {
  if (req.method() != Method::kOptions && req.method() != Method::kTrace) return {};
  const std::string_view digits = req.header("Max-Forwards").value_or("");
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return {};
  return number;
}

// What all tries of one request share.
struct ProxiedCall final : BodySplicer {
  explicit ProxiedCall(Request& request) : req(request), hop(request.headers()) {}

  Request& req;
  const HopFields hop;
  std::string_view body{};  // received as a whole
  bool streams = false;     // the body is passed on as it arrives
  // The client has broken the rules, or gone: the server answers that. Owner: this goroutine until the sending of the body
  // begins, then the one that sends, until it has ended.
  bool unreadable = false;
  // The time of the call has passed while more of the body was waited for. Owner: the same.
  bool late = false;

  // Only now does a client that waits for "100 Continue" get it. Not from the goroutine that reads the source, because the
  // answer may begin meanwhile.
  void begins() override { unreadable = !req.exchange().separate_directions(); }
  net::Spliced splice_to(net::Conn& to, std::uint64_t most, const Context& ctx) override {
    net::Spliced spliced = req.exchange().splice_request(to, most, ctx);
    unreadable = unreadable || (spliced.read_error && !ctx.done());
    late = late || (spliced.read_error && ctx.done());
    return spliced;
  }
};

}  // namespace

class ReverseProxy::Impl {
 public:
  explicit Impl(ReverseProxyOptions options)
      : options_(std::move(options)),
        upstreams_(std::make_shared<Upstreams>(options_)),
        background_(options_, upstreams_),
        via_(options_.via) {}

  void serve(Request& req, ResponseWriter& res);
  [[nodiscard]] std::vector<UpstreamStats> stats() const { return upstreams_->stats(); }

 private:
  [[nodiscard]] bool receive_body(ProxiedCall& call) const;
  [[nodiscard]] std::string hash_key(const Request& req) const;
  void prepare(ProxiedCall& call, ClientRequest& out) const;
  [[nodiscard]] std::optional<Error> attempt(Upstream& upstream, ProxiedCall& call, ResponseWriter& res);
  static void answer_ended(const Context& ctx, ResponseWriter& res);
  void answer(Upstream& upstream, Request& req, ResponseWriter& res, ClientResponse& answer, HeldUp& held_up);
  void fail(std::string_view upstream, Request& req, ResponseWriter& res, const Error& error) const;

  const ReverseProxyOptions options_;
  const std::shared_ptr<Upstreams> upstreams_;
  Background background_;
  const Via via_;
};

void ReverseProxy::Impl::serve(Request& req, ResponseWriter& res) {
  if (!req.path().starts_with('/')) return res.error(400);  // "*", or the target of CONNECT
  if (via_.loops(req)) {
    log_loop(req);
    return res.error(508);
  }
  // A TRACE would be answered with the client's own fields, which are nobody else's business.
  if (forwards_left(req) == 0) return req.method() == Method::kOptions ? res.status(204) : res.error(501);
  ProxiedCall call(req);
  if (!receive_body(call)) return;
  background_.ready(req.context());
  if (req.context().done()) return answer_ended(req.context(), res);
  const std::string key = hash_key(req);
  std::vector<UpstreamRef> tried;
  UpstreamRef upstream = upstreams_->choose(key, tried);
  if (upstream == nullptr) return fail("", req, res, Error(Errc::kNoSuchHost, "find an upstream"));
  for (;;) {
    const std::optional<Error> failed = attempt(*upstream, call, res);
    if (!failed) return;
    tried.push_back(upstream);
    UpstreamRef next = tried.size() < options_.tries_max ? upstreams_->choose(key, tried) : nullptr;
    if (next == nullptr) return fail(upstream->name, req, res, *failed);
    upstream = std::move(next);
  }
}

// Before there is an answer.
void ReverseProxy::Impl::answer_ended(const Context& ctx, ResponseWriter& res) {
  const bool late = ctx.cause().timeout();
  if (!late) res.close();  // it may have ended its own direction only
  res.error(late ? 504 : kClientClosedRequest);
}

// False: the server answers.
bool ReverseProxy::Impl::receive_body(ProxiedCall& call) const {
  Request& req = call.req;
  if (req.exchange().too_large()) return false;
  const std::optional<std::uint64_t> length = req.content_length();
  call.streams = !length || *length > options_.repeatable_bytes_max;
  if (call.streams || *length == 0) return true;
  const Result<std::string_view> body = req.body(req.context());
  if (body) call.body = *body;
  return body.has_value();
}

std::string ReverseProxy::Impl::hash_key(const Request& req) const {
  if (options_.balance != Balance::kHash) return {};
  if (options_.hash_key) return options_.hash_key(req);
  return std::string(address_of(req.remote()));
}

void ReverseProxy::Impl::prepare(ProxiedCall& call, ClientRequest& out) const {
  Request& req = call.req;
  pass_fields(req, call.hop, out, options_.underscores_in_names);
  if (call.hop.names_te() && lists(req.headers(), "TE", "trailers")) {
    add_known_field(out, "Connection", "TE");
    add_known_field(out, "TE", "trailers");
  }
  if (options_.keep_host && !req.host().empty()) add_known_field(out, "Host", req.host());
  if (const auto left = forwards_left(req)) out.set_header("Max-Forwards", std::to_string(*left - 1));
  via_.add(req, out);
  add_forwarded(req, options_.forwarded, out);
  if (call.streams) {
    const auto source = [this, &call, &out](const Context& ctx,
                                            std::span<std::byte> into) -> Result<std::size_t> {
      if (call.unreadable) return std::unexpected(Error(Errc::kClosed, "read body", "the client has gone"));
      const Result<std::size_t> n = call.req.read_body(ctx, into);
      if (!n) (ctx.done() ? call.late : call.unreadable) = true;
      if (!n || *n > 0) return n;
      for (const auto& [name, value] : call.req.trailers()) {
        if (may_be_trailer(name) && may_pass(name, options_.underscores_in_names))
          out.add_trailer(name, value);
      }
      return n;
    };
    out.set_body_source(source, req.content_length());
    out.splicer_ = &call;
    out.keep_sending();  // the answer may begin before the body has ended
    if (req.header("Expect")) out.expect_continue();
  } else if (!call.body.empty()) {
    out.set_body(std::string(call.body));
  } else if (call.hop.upgrades() && req.version_minor() > 0) {
    const std::string protocols = protocols_among(req.headers(), options_.upgrades);
    if (!protocols.empty()) out.set_upgrade(protocols);
  }
  if (options_.rewrite) options_.rewrite(req, out);
}

// An error: there is no answer yet, and another upstream may be asked.
std::optional<Error> ReverseProxy::Impl::attempt(Upstream& upstream, ProxiedCall& call, ResponseWriter& res) {
  Request& req = call.req;
  const Active active(upstream);
  Url url = upstream.url;
  url.target = target_of(req);
  ClientRequest out(req.method(), std::move(url));
  prepare(call, out);
  HeldUp held_up;
  out.on_interim(
      [&](int status, const ReceivedHeaders& headers) { pass_interim(req, status, headers, held_up); });
  Result<ClientResponse> got = upstream.client.send(req.context(), out);
  if (got) {
    upstreams_->answered(upstream);
    answer(upstream, req, res, *got, held_up);
    return {};
  }
  if (call.unreadable) return {};
  if (const Context& ctx = req.context(); ctx.done()) {
    answer_ended(ctx, res);
    return {};
  }
  const Error& error = got.error();
  if (call.late && error.timeout()) {
    res.close();
    res.error(408);
    return {};
  }
  // A hook has made a URL that nobody can be asked for.
  if (error.is(Errc::kBadAddress)) {
    fail(upstream.name, req, res, error);
    return {};
  }
  const bool client_was_slow = held_up.by_client() && error.timeout();
  const bool was_asked = out.got_place() && !net::is_out_of_resources(error);
  if (was_asked && !client_was_slow) upstreams_->failed(upstream, error);
  const bool idempotent = is_idempotent(req.method()) || req.header("Idempotency-Key");
  const bool repeatable = idempotent && !call.streams && !error.is(Errc::kBadMessage);
  if (repeatable || !out.sent()) return error;
  fail(upstream.name, req, res, error);
  return {};
}

// What breaks off here does so for the client: it must not take a part for the whole.
void ReverseProxy::Impl::answer(Upstream& upstream, Request& req, ResponseWriter& res, ClientResponse& answer,
                                HeldUp& held_up) {
  const Result<void> passed = answer.status() == 101 ? pass_tunnel(req, res, answer, options_)
                                                     : pass_back(req, res, answer, options_, held_up);
  if (passed || req.context().done()) return;
  const bool client_was_slow = held_up.by_client() && passed.error().timeout();
  if (!client_was_slow) upstreams_->failed(upstream, passed.error());
  if (!res.head_sent()) return fail(upstream.name, req, res, passed.error());
  throw StatusError(502, "the answer of upstream " + upstream.name +
                             " broke off: " + without_query(passed.error().message()));
}

void ReverseProxy::Impl::fail(std::string_view upstream, Request& req, ResponseWriter& res,
                              const Error& error) const {
  log_failure(upstream, error);
  const int status = error.timeout()                   ? 504
                     : net::is_out_of_resources(error) ? 503
                     : error.is(Errc::kBadAddress)     ? 500
                                                       : 502;
  if (!options_.on_failure) return res.error(status);
  options_.on_failure(req, res, {.status = status, .error = error, .upstream = upstream});
}

ReverseProxy::ReverseProxy(ReverseProxyOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {}

void ReverseProxy::operator()(Request& req, ResponseWriter& res) const { impl_->serve(req, res); }

std::vector<UpstreamStats> ReverseProxy::stats() const { return impl_->stats(); }

}  // namespace tuza::http
