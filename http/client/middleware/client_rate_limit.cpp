#include <tuza/http/client/middleware/client_rate_limit.h>

#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/rate.h>

#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

// Thread-safe.
class ClientLimits {
 public:
  explicit ClientLimits(const ClientRateLimitOptions& options) : options_(options) {
    if (!(options_.per_second > 0) || options_.burst < 1 || options_.origins_max < 1)
      throw std::invalid_argument("client_rate_limit(): per_second, burst and origins_max are positive");
  }

  [[nodiscard]] Result<void> wait(const Context& ctx, const ClientRequest& request) {
    const bool by_origin = options_.per_origin && request.url();
    // It outlives its place in the list while somebody waits for it.
    const std::shared_ptr<rate::Limiter> limiter = find(by_origin ? request.url()->origin() : std::string());
    return limiter->wait(ctx);
  }

 private:
  struct Bucket {
    std::string origin;
    std::shared_ptr<rate::Limiter> limiter;
  };

  // Clients know few origins, and mostly ask the same again: it is at the front.
  std::shared_ptr<rate::Limiter> find(std::string origin) {
    const LockGuard lock(mutex_);
    for (auto at = buckets_.begin(); at != buckets_.end(); ++at) {
      if (at->origin != origin) continue;
      buckets_.splice(buckets_.begin(), buckets_, at);
      return at->limiter;
    }
    if (buckets_.size() >= options_.origins_max) buckets_.pop_back();
    buckets_.push_front(
        {std::move(origin), std::make_shared<rate::Limiter>(options_.per_second, options_.burst)});
    return buckets_.front().limiter;
  }

  const ClientRateLimitOptions options_;
  Mutex mutex_;
  std::list<Bucket> buckets_ TUZA_GUARDED_BY(mutex_);  // the one that was asked last at the front
};

}  // namespace

ClientMiddleware client_rate_limit(ClientRateLimitOptions options) {
  return [limits = std::make_shared<ClientLimits>(options)](
             const Context& ctx, ClientRequest& request, const ClientNext& next) -> Result<ClientResponse> {
    if (const Result<void> may = limits->wait(ctx, request); !may) return std::unexpected(may.error());
    return next(ctx, request);
  };
}

}  // namespace tuza::http
