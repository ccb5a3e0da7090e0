#include <tuza/http/middleware/timeout.h>

#include <tuza/http/serve/context_for.h>
#include <tuza/sched/sync/context.h>

#include <stdexcept>
#include <utility>

namespace tuza::http {
Middleware timeout(std::chrono::nanoseconds limit) {
  if (limit.count() <= 0) throw std::invalid_argument("timeout(): the limit is positive");
  return [limit](Handler next) -> Handler {
    return [limit, next = std::move(next)](Request& request, ResponseWriter& response) {
      auto [context, cancel] = with_timeout(request.context(), limit);
      {
        const ContextFor inside(request.exchange(), context);
        next(request, response);
      }
      // The server answers for a body that did not come in time.
      if (request.exchange().needs_no_answer()) return;
      if (response.head_sent() || !context.done() || !context.cause().timeout()) return;
      response.error(503);
    };
  };
}

}  // namespace tuza::http
