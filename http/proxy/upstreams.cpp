#include <tuza/http/proxy/upstreams.h>

#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/log.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::string_view kUnixSocket = "unix:";

// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): bits of the key reach all bits of the result.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Url url_of(const std::string& text) {
  if (text == kUnixSocket)
    throw std::invalid_argument("ReverseProxyOptions: upstream " + text +
                                ": the path of a socket is missing");
  if (text.starts_with(kUnixSocket)) return Url{.https = false, .authority = "localhost", .target = "/"};
  Result<Url> url = Url::parse(text);
  if (!url)
    throw std::invalid_argument("ReverseProxyOptions: upstream " + text + ": " + url.error().message());
  if (url->target != "/")
    throw std::invalid_argument("ReverseProxyOptions: upstream " + text + ": has a path; use rewrite");
  return *std::move(url);
}

// An address needs no lookup.
bool has_name(const std::string& text, const Url& url) {
  return !text.starts_with(kUnixSocket) && !net::parse_endpoint(url.address());
}

bool is_among(const UpstreamRef& upstream, std::span<const UpstreamRef> those) {
  return std::ranges::find(those, upstream) != those.end();
}

void log_change(LogLevel level, const Upstream& upstream, std::string_view what) {
  log_line(level, "tuza: upstream " + upstream.name + " " + std::string(what));
}

}  // namespace

ClientOptions client_options_for(const std::string& text, const std::string& place, ClientOptions options) {
  if (text.starts_with(kUnixSocket)) options.address = text;
  if (!place.empty()) options.address = place;
  options.redirects_max = 0;
  options.decompress = false;
  options.user_agent.clear();
  return options;
}

Upstream::Upstream(const std::string& of_options, std::string where, const ClientOptions& options)
    : name(where.empty() ? of_options : of_options + "@" + where),
      url(url_of(of_options)),
      seed(stable_hash(name)),
      client(client_options_for(of_options, where, options)),
      text(of_options),
      place(std::move(where)) {}

Upstreams::Upstreams(const ReverseProxyOptions& options)
    : balance_(options.balance),
      failures_max_(options.failures_max),
      pause_ns_(std::chrono::nanoseconds(options.pause).count()),
      client_(options.client) {
  if (options.upstreams.empty()) throw std::invalid_argument("ReverseProxyOptions: no upstreams");
  for (const std::string& upstream : options.upstreams) {
    auto made = std::make_shared<Upstream>(upstream, "", client_);  // refuses what is malformed
    if (options.resolve_every.count() > 0 && has_name(upstream, made->url)) {
      (void)Upstream(upstream, "127.0.0.1:1", client_);  // refuses what cannot be, such as proxies
      names_.push_back(upstream);
    } else {
      upstreams_.push_back(std::move(made));
    }
  }
}

// The request that finds the time passed, and moves it on, is the one that tries the upstream.
UpstreamRef Upstreams::choose(std::string_view key, std::span<const UpstreamRef> tried) {
  const std::int64_t now = coarse_now_ns();
  const auto held = lock();
  for (const UpstreamRef& upstream : upstreams_) {
    std::int64_t until = upstream->left_out_until_ns.load(std::memory_order_relaxed);
    if (until == 0 || now < until || upstream->unhealthy.load(std::memory_order_relaxed)) continue;
    if (is_among(upstream, tried)) continue;
    if (upstream->left_out_until_ns.compare_exchange_strong(until, now + pause_ns_,
                                                            std::memory_order_relaxed))
      return upstream;
  }
  return best(key, tried, now);
}

// By the lowest cost. Those that are left out come behind all others, the one that comes back first in front; unhealthy ones come
// last.
UpstreamRef Upstreams::best(std::string_view key, std::span<const UpstreamRef> tried,
                            std::int64_t now) const {
  const std::size_t count = upstreams_.size();
  const std::size_t first = balance_ == Balance::kHash ? 0 : next_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t hash = balance_ == Balance::kHash ? stable_hash(key) : 0;
  const UpstreamRef* found = nullptr;
  using Cost = std::tuple<bool, std::int64_t, std::uint64_t>;
  Cost lowest;
  for (std::size_t i = 0; i < count; ++i) {
    const UpstreamRef& upstream = upstreams_[(first + i) % count];
    if (is_among(upstream, tried)) continue;
    const std::int64_t until = upstream->left_out_until_ns.load(std::memory_order_relaxed);
    std::uint64_t cost = i;
    if (balance_ == Balance::kLeastRequests) cost = upstream->active.load(std::memory_order_relaxed);
    if (balance_ == Balance::kHash) cost = mixed(hash ^ upstream->seed);
    const Cost total{upstream->unhealthy.load(std::memory_order_relaxed),
                     std::max(until - now, std::int64_t{0}), cost};
    if (found != nullptr && total >= lowest) continue;
    found = &upstream;
    lowest = total;
  }
  return found != nullptr ? *found : nullptr;
}

std::vector<UpstreamRef> Upstreams::all() const {
  const auto held = lock();
  return upstreams_;
}

std::vector<UpstreamRef> Upstreams::set_places(std::size_t name, std::span<const std::string> places,
                                               const Context& stop) {
  const std::string& text = names_[name];
  std::vector<UpstreamRef> fresh, gone;
  {
    const auto held = lock();
    const auto is_here = [&](const UpstreamRef& one) { return one->text == text; };
    for (const UpstreamRef& one : upstreams_) {
      if (is_here(one) && std::ranges::find(places, one->place) == places.end()) gone.push_back(one);
    }
    std::erase_if(upstreams_, [&](const UpstreamRef& one) { return is_among(one, gone); });
    for (const std::string& place : places) {
      const auto known = [&](const UpstreamRef& one) { return is_here(one) && one->place == place; };
      if (std::ranges::any_of(upstreams_, known)) continue;
      fresh.push_back(std::make_shared<Upstream>(text, place, client_));
      fresh.back()->life = with_cancel(stop);
      upstreams_.push_back(fresh.back());
    }
  }
  for (const UpstreamRef& one : fresh) log_change(LogLevel::kInfo, *one, "is new");
  for (const UpstreamRef& one : gone) {
    one->life.cancel();
    log_change(LogLevel::kInfo, *one, "is gone");
  }
  return fresh;
}

void Upstreams::answered(Upstream& upstream) {
  if (upstream.failed_in_a_row.load(std::memory_order_relaxed) == 0) return;
  upstream.failed_in_a_row.store(0, std::memory_order_relaxed);
  if (upstream.left_out_until_ns.exchange(0, std::memory_order_relaxed) != 0)
    log_change(LogLevel::kInfo, upstream, "answers again");
}

void Upstreams::failed(Upstream& upstream, const Error& error) {
  upstream.failures.fetch_add(1, std::memory_order_relaxed);
  const std::size_t in_a_row = upstream.failed_in_a_row.fetch_add(1, std::memory_order_relaxed) + 1;
  if (failures_max_ == 0 || in_a_row < failures_max_) return;
  const std::int64_t until = coarse_now_ns() + pause_ns_;
  if (upstream.left_out_until_ns.exchange(until, std::memory_order_relaxed) == 0)
    log_change(LogLevel::kWarning, upstream, "is left out: " + error.message());
}

void Upstreams::healthy(Upstream& upstream) {
  if (upstream.unhealthy.exchange(false, std::memory_order_relaxed))
    log_change(LogLevel::kInfo, upstream, "is healthy again");
}

void Upstreams::unhealthy(Upstream& upstream, const Error& error) {
  if (!upstream.unhealthy.exchange(true, std::memory_order_relaxed))
    log_change(LogLevel::kWarning, upstream, "is unhealthy: " + error.message());
}

std::vector<UpstreamStats> Upstreams::stats() const {
  std::vector<UpstreamStats> stats;
  for (const UpstreamRef& upstream : this->all()) {
    stats.push_back({.name = upstream->name,
                     .left_out = upstream->left_out_until_ns.load(std::memory_order_relaxed) != 0,
                     .unhealthy = upstream->unhealthy.load(std::memory_order_relaxed),
                     .active = upstream->active.load(std::memory_order_relaxed),
                     .requests = upstream->requests.load(std::memory_order_relaxed),
                     .failures = upstream->failures.load(std::memory_order_relaxed),
                     .checks = upstream->checks.load(std::memory_order_relaxed),
                     .checks_failed = upstream->checks_failed.load(std::memory_order_relaxed),
                     .client = upstream->client.stats()});
  }
  return stats;
}

}  // namespace tuza::http
