#include <tuza/http/client/middleware/retry.h>

#include <tuza/http/client/middleware/circuit_breaker.h>
#include <tuza/http/client/retry_after.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

using std::chrono::nanoseconds;

RetryOptions checked(RetryOptions options) {
  const bool sound = options.tries_max >= 1 && options.backoff.count() >= 0 &&
                     options.backoff_max.count() >= 0 && options.retry_after_max.count() >= 0 &&
                     options.budget_ratio >= 0 && options.budget_burst >= 0;
  if (!sound) throw std::invalid_argument("retry(): no number is negative, and tries_max is at least 1");
  return options;
}

bool may_pass(const Error& error) {
  return !net::is_tls_error(error) && !error.closed() && !error.is(Errc::kNoSuchHost) && !error.cancelled() &&
         !error.is(Errc::kBadAddress) && !error.is(Errc::kBadMessage) && !error.is(Errc::kOther) &&
         !is_circuit_open(error);
}

// Thread-safe.
class Retries {
 public:
  explicit Retries(RetryOptions options)
      : options_(checked(std::move(options))),
        tokens_(options_.budget_burst),
        random_(std::random_device{}()) {}

  Result<ClientResponse> send(const Context& ctx, ClientRequest& request, const ClientNext& next) {
    earn();
    for (int tries = 1;; ++tries) {
      Result<ClientResponse> response = next(ctx, request);
      if (ctx.done() || !has_failed(response)) return response;
      const std::optional<std::chrono::seconds> asked = response ? retry_after(*response) : std::nullopt;
      const nanoseconds least = asked.value_or(std::chrono::seconds(0));
      const bool again =
          tries < options_.tries_max && may_repeat(request, !response) && least <= options_.retry_after_max;
      if (!again || !pause_for(ctx, least, tries, response)) {
        if (response || tries == 1) return response;
        return std::unexpected(errorf("{} tries: {}", tries, response.error()));
      }
    }
  }

 private:
  [[nodiscard]] bool has_failed(const Result<ClientResponse>& response) const {
    return response ? std::ranges::find(options_.statuses, response->status()) != options_.statuses.end()
                    : may_pass(response.error());
  }

  [[nodiscard]] static bool may_repeat(const ClientRequest& request, bool unanswered) {
    if (!request.can_repeat_body()) return false;
    return is_idempotent(request.method()) || request.header("Idempotency-Key") ||
           (unanswered && !request.sent());
  }

  // False: there is no token, or no time. The response ends before the pause: its connection is for others.
  bool pause_for(const Context& ctx, nanoseconds least, int tries, Result<ClientResponse>& response) {
    const nanoseconds pause = least + jitter(tries);
    if (ctx.deadline() && now() + pause >= *ctx.deadline()) return false;
    if (!spend()) return false;
    response = std::unexpected(Error(Errc::kCancelled, "retry"));
    Result<void> slept = sleep_for(ctx, pause);
    if (!slept) response = std::unexpected(slept.error());
    return slept.has_value();
  }

  [[nodiscard]] nanoseconds jitter(int tries) {
    nanoseconds limit = options_.backoff;
    for (int i = 1; i < tries && limit < options_.backoff_max; ++i) limit *= 2;
    limit = std::min<nanoseconds>(limit, options_.backoff_max);
    const LockGuard lock(lock_);
    return nanoseconds(std::uniform_int_distribution<nanoseconds::rep>(0, limit.count())(random_));
  }

  void earn() {
    const LockGuard lock(lock_);
    tokens_ = std::min<double>(tokens_ + options_.budget_ratio, options_.budget_burst);
  }
  bool spend() {
    const LockGuard lock(lock_);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  const RetryOptions options_;
  rt::SpinLock lock_;
  double tokens_ TUZA_GUARDED_BY(lock_);
  std::minstd_rand random_ TUZA_GUARDED_BY(lock_);
};

}  // namespace

ClientMiddleware retry(RetryOptions options) {
  return [retries = std::make_shared<Retries>(std::move(options))](const Context& ctx, ClientRequest& request,
                                                                   const ClientNext& next) {
    return retries->send(ctx, request, next);
  };
}

}  // namespace tuza::http
