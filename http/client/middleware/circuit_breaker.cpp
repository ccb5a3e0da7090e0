#include <tuza/http/client/middleware/circuit_breaker.h>

#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/clock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace tuza::http {
namespace {

using Moment = std::chrono::steady_clock::time_point;

class CircuitCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tuza.circuit"; }
  [[nodiscard]] std::string message(int) const override { return "circuit open"; }
};

std::error_code circuit_open() {
  static const CircuitCategory category;
  return {1, category};
}

CircuitBreakerOptions checked(CircuitBreakerOptions options) {
  if (options.failures_max < 1 || options.pause.count() < 1 || options.origins_max < 1)
    throw std::invalid_argument("circuit_breaker(): failures_max, pause and origins_max are positive");
  return options;
}

// "9.8 s", rounded up: not "0.0 s" while there is something left.
std::string seconds_text(std::chrono::nanoseconds time) {
  const auto tenths = std::chrono::ceil<std::chrono::duration<long, std::deci>>(time).count();
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

// Thread-safe. An origin without failures has no circuit.
class Circuits {
 public:
  explicit Circuits(CircuitBreakerOptions options) : options_(checked(std::move(options))) {}

  Result<ClientResponse> send(const Context& ctx, ClientRequest& request, const ClientNext& next) {
    const std::string origin = request.url() ? request.url()->origin() : std::string();
    Attempt attempt(*this, origin);
    if (const Result<void> may = attempt.begin(); !may) return std::unexpected(may.error());
    Result<ClientResponse> response = next(ctx, request);
    if (response) {
      const auto& failures = options_.statuses;
      const bool failed = std::ranges::find(failures, response->status()) != failures.end();
      attempt.end(failed ? Outcome::kFailure : Outcome::kSuccess,
                  failed ? "status " + std::to_string(response->status()) : std::string());
    } else if (request.got_place() && says_something(response.error())) {
      attempt.end(Outcome::kFailure, response.error().message());
    }
    return response;
  }

 private:
  enum class Outcome : std::uint8_t { kSuccess, kFailure, kNone };
  struct Circuit {
    CircuitState state = CircuitState::kClosed;
    int failures = 0;
    Moment failed_at{};  // the last time
    std::string last{};  // what failed then
  };

  // One request. One that ends without an outcome, by an exception too, leaves it to the next to find out.
  class Attempt {
   public:
    Attempt(Circuits& circuits, const std::string& origin) : circuits_(circuits), origin_(origin) {}
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    ~Attempt() {
      if (begun_) end(Outcome::kNone, {});
    }
    [[nodiscard]] Result<void> begin() {
      Result<void> may = circuits_.begin(origin_, finds_out_);
      begun_ = may.has_value();
      return may;
    }
    void end(Outcome outcome, std::string what) {
      begun_ = false;
      circuits_.end(origin_, finds_out_, outcome, std::move(what));
    }

   private:
    Circuits& circuits_;
    const std::string& origin_;
    bool begun_ = false, finds_out_ = false;
  };

  [[nodiscard]] static bool says_something(const Error& error) {
    return !error.cancelled() && !error.closed() && !error.is(Errc::kBadAddress) && !error.is(Errc::kOther) &&
           !is_circuit_open(error);
  }

  [[nodiscard]] Result<void> begin(const std::string& origin, bool& finds_out) {
    {
      const LockGuard lock(mutex_);
      const auto at = circuits_.find(origin);
      if (at == circuits_.end() || at->second.state == CircuitState::kClosed) return {};
      Circuit& circuit = at->second;
      const std::chrono::nanoseconds left = circuit.failed_at + options_.pause - now();
      if (circuit.state == CircuitState::kHalfOpen || left.count() > 0) {
        const std::string until = left.count() > 0 ? ", for " + seconds_text(left) + " more" : std::string();
        return std::unexpected(
            Error::from_text(circuit_open(), "circuit open for " + origin + until + ": " + circuit.last));
      }
      circuit.state = CircuitState::kHalfOpen;
      finds_out = true;
    }
    tell(origin, CircuitState::kHalfOpen);
    return {};
  }

  void end(const std::string& origin, bool finds_out, Outcome outcome, std::string what) {
    std::optional<CircuitState> changed;
    {
      const LockGuard lock(mutex_);
      changed =
          finds_out ? decide(origin, outcome, std::move(what)) : count(origin, outcome, std::move(what));
    }
    if (changed) tell(origin, *changed);
  }

  // After the request that was to find out.
  std::optional<CircuitState> decide(const std::string& origin, Outcome outcome, std::string what)
      TUZA_REQUIRES(mutex_) {
    const auto at = circuits_.find(origin);
    if (at == circuits_.end()) return std::nullopt;  // forgotten meanwhile
    if (outcome == Outcome::kSuccess) {
      circuits_.erase(at);
      return CircuitState::kClosed;
    }
    at->second.state = CircuitState::kOpen;
    if (outcome == Outcome::kFailure) {
      at->second.failed_at = now();
      at->second.last = std::move(what);
    }
    return CircuitState::kOpen;
  }

  // After any other.
  std::optional<CircuitState> count(const std::string& origin, Outcome outcome, std::string what)
      TUZA_REQUIRES(mutex_) {
    if (outcome == Outcome::kNone) return std::nullopt;
    const auto at = circuits_.find(origin);
    if (at != circuits_.end() && at->second.state != CircuitState::kClosed) return std::nullopt;
    if (outcome == Outcome::kSuccess) {
      if (at != circuits_.end()) circuits_.erase(at);
      return std::nullopt;
    }
    if (at == circuits_.end() && circuits_.size() >= options_.origins_max) forget_oldest();
    Circuit& circuit = circuits_[origin];
    circuit.failed_at = now();
    circuit.last = std::move(what);
    if (++circuit.failures < options_.failures_max) return std::nullopt;
    circuit.state = CircuitState::kOpen;
    return CircuitState::kOpen;
  }

  void forget_oldest() TUZA_REQUIRES(mutex_) {
    const auto oldest =
        std::ranges::min_element(circuits_, {}, [](const auto& entry) { return entry.second.failed_at; });
    circuits_.erase(oldest);
  }

  void tell(const std::string& origin, CircuitState state) const {
    if (options_.on_change) options_.on_change(origin, state);
  }

  const CircuitBreakerOptions options_;
  Mutex mutex_;
  std::map<std::string, Circuit> circuits_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace

ClientMiddleware circuit_breaker(CircuitBreakerOptions options) {
  return [circuits = std::make_shared<Circuits>(std::move(options))](
             const Context& ctx, ClientRequest& request, const ClientNext& next) {
    return circuits->send(ctx, request, next);
  };
}

bool is_circuit_open(const Error& error) { return error.code() == circuit_open(); }

}  // namespace tuza::http
