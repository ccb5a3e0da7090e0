#include <tuza/http/middleware/body_limit.h>

#include <tuza/http/serve/body_filter.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/status_error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tuza::http {
namespace {

class LimitedBody final : public BodySource {
 public:
  LimitedBody(Exchange& exchange, std::uint64_t limit) : BodySource(exchange), limit_(limit) {}

  Result<std::size_t> read(std::span<std::byte> into, const Context* ctx) override {
    const RequestHead& head = exchange_.buffers().head;
    if (too_large_ || (!head.chunked && head.content_length > limit_)) return fail();
    const Result<std::size_t> n = read_below(into, ctx);
    if (!n) return n;
    received_ += *n;
    return received_ <= limit_ ? n : fail();
  }
  // Returns the limit until now.
  std::uint64_t set_limit(std::uint64_t limit) { return std::exchange(limit_, limit); }
  [[nodiscard]] bool too_large() const { return too_large_; }

 private:
  Result<std::size_t> fail() {
    too_large_ = true;
    return std::unexpected(Error(Errc::kBadMessage, "read body", "request body too large"));
  }

  std::uint64_t limit_;
  std::uint64_t received_ = 0;
  bool too_large_ = false;
};

// The limit of the outermost body_limit() around a request; the inner ones change it for their handlers.
constexpr Key<LimitedBody*> kLimit;

// Restores what it has changed, however the handler ends.
class Inner {
 public:
  Inner(LimitedBody& body, std::uint64_t limit) : body_(body), outer_(body.set_limit(limit)) {}
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;
  ~Inner() { body_.set_limit(outer_); }

 private:
  LimitedBody& body_;
  const std::uint64_t outer_;
};

class Outermost {
 public:
  Outermost(Request& request, std::uint64_t limit)
      : body(request.exchange(), limit), slot_(request.set(kLimit, &body)) {}
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
  ~Outermost() { slot_ = nullptr; }
  LimitedBody body;

 private:
  LimitedBody*& slot_;
};

}  // namespace

Middleware body_limit(std::uint64_t bytes_max) {
  return [bytes_max](Handler next) -> Handler {
    return [bytes_max, next = std::move(next)](Request& request, ResponseWriter& response) {
      request.exchange().raise_body_limit(bytes_max);
      if (LimitedBody** const outer = request.get(kLimit); outer != nullptr && *outer != nullptr) {
        const Inner inner(**outer, bytes_max);
        return next(request, response);
      }
      const Outermost limited(request, bytes_max);
      try {
        next(request, response);
      } catch (const StatusError&) {
        // Of a call that could not read the body, and does not know why.
        if (!limited.body.too_large() || response.head_sent()) throw;
      }
      if (limited.body.too_large() && !response.head_sent()) response.error(413);
    };
  };
}

}  // namespace tuza::http
