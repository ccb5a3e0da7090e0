#include <tuza/http/middleware/timeout.h>

#include <tuza/http/serve/exchange.h>
#include <tuza/sched/sync/context.h>

#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

class ContextFor {
 public:
  ContextFor(Exchange& exchange, const Context& context)
      : exchange_(exchange), outer_(exchange.exchange_contexts({.context = context})) {}
  ContextFor(const ContextFor&) = delete;
  ContextFor& operator=(const ContextFor&) = delete;
  ~ContextFor() { exchange_.exchange_contexts(std::move(outer_)); }

 private:
  Exchange& exchange_;
  Exchange::Contexts outer_;
};

}  // namespace

Middleware timeout(std::chrono::nanoseconds limit) {
  if (limit.count() <= 0) throw std::invalid_argument("timeout(): the limit is positive");
  return [limit](Handler next) -> Handler {
    return [limit, next = std::move(next)](Request& request, ResponseWriter& response) {
      auto [context, cancel] = with_timeout(request.context(), limit);
      {
        const ContextFor inside(request.exchange(), context);
        next(request, response);
      }
      if (response.head_sent() || !context.done() || !context.cause().timeout()) return;
      response.error(503);
    };
  };
}

}  // namespace tuza::http
