#include <tuza/framework/access_log.h>

#include <tuza/framework/log/current.h>
#include <tuza/framework/log/request_line.h>
#include <tuza/sched/rt/base/clock.h>

#include <utility>

namespace tuza {

http::Middleware access_log() {
  return [](http::Handler next) -> http::Handler {
    return [next = std::move(next)](http::Request& request, http::ResponseWriter& response) {
      if (!logging::wants(LogLevel::kInfo)) return next(request, response);
      const std::int64_t begun = rt::now_ns();
      http::observe(next, request, response, [&](int status) {
        logging::log_request(request, response, status, begun, rt::now_ns());
      });
    };
  };
}

void log_refused(const http::RefusedRequest& refused) { logging::log_refused(refused); }

}  // namespace tuza
