#include <tuza/http/middleware/rate_limit.h>

#include <tuza/http/wire/digest.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/rate.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kShards = 16;

// So long a key is remembered by its digest: clients may choose it.
constexpr std::size_t kKeyBytesMax = 64;

// Short enough to need no allocation. What comes over a Unix socket has no address, and shares a bucket.
std::string address_key(const Request& request) {
  const Result<net::Endpoint> endpoint = request.remote_endpoint();
  if (!endpoint) return "-";
  const net::IpAddress address = endpoint->address().unmapped();
  const std::span<const std::uint8_t> all(address.bytes());
  const std::span<const std::uint8_t> key = address.is_v4() ? all.last(4) : all.first(8);
  return {key.begin(), key.end()};
}

// Some of the keys, the one that has asked last at the front. Thread-safe.
class KeyShard {
 public:
  // nullopt: the request may pass; otherwise when the next one may.
  std::optional<std::chrono::nanoseconds> ask(std::string key, const RateLimitOptions& options,
                                              std::size_t keys_max) {
    const LockGuard lock(mutex_);
    Entry& entry = find(std::move(key), options, keys_max);
    if (entry.limiter.allow()) return std::nullopt;
    rate::Reservation next = entry.limiter.reserve();
    const std::chrono::nanoseconds delay = next.delay();
    next.cancel();
    return delay;
  }

 private:
  struct Entry {
    Entry(std::string text, double per_second, int burst)
        : key(std::move(text)), limiter(per_second, burst) {}
    const std::string key;
    rate::Limiter limiter;
  };

  Entry& find(std::string key, const RateLimitOptions& options, std::size_t keys_max) TUZA_REQUIRES(mutex_) {
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return *known->second;
    }
    if (entries_.size() >= keys_max) {
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    entries_.emplace_front(std::move(key), options.per_second, options.burst);
    by_key_.emplace(entries_.front().key, entries_.begin());
    return entries_.front();
  }

  Mutex mutex_;
  std::list<Entry> entries_ TUZA_GUARDED_BY(mutex_);
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_ TUZA_GUARDED_BY(mutex_);
};

class Limits {
 public:
  explicit Limits(RateLimitOptions options) : options_(std::move(options)) {
    if (!(options_.per_second > 0) || options_.burst < 1 || options_.keys_max < 1) {
      throw std::invalid_argument("rate_limit(): per_second, burst and keys_max are positive");
    }
    // Few keys are all in one shard, so that the limit on their number is exact.
    shards_used_ = options_.keys_max < 64 * kShards ? 1 : kShards;
  }

  std::optional<std::chrono::nanoseconds> ask(Request& request) {
    std::string key = options_.key ? options_.key(request) : address_key(request);
    if (key.empty()) return std::nullopt;
    if (key.size() > kKeyBytesMax) {
      const Sha256Digest digest = sha256_of(key);
      key = std::string(digest.begin(), digest.end());
    }
    // The upper bits: the table of a shard uses the lower ones.
    const std::size_t hash = std::hash<std::string_view>()(key);
    KeyShard& shard = shards_[(hash >> 48) % shards_used_];
    return shard.ask(std::move(key), options_, options_.keys_max / shards_used_);
  }

 private:
  const RateLimitOptions options_;
  std::size_t shards_used_;
  std::array<KeyShard, kShards> shards_;
};

}  // namespace

Middleware rate_limit(RateLimitOptions options) {
  return [limits = std::make_shared<Limits>(std::move(options))](Handler next) -> Handler {
    return [limits, next = std::move(next)](Request& request, ResponseWriter& response) {
      const std::optional<std::chrono::nanoseconds> wait = limits->ask(request);
      if (!wait) return next(request, response);
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(*wait).count();
      response.set_header("Retry-After", std::to_string(std::max<std::int64_t>(seconds, 1)));
      response.error(429);
    };
  };
}

}  // namespace tuza::http
