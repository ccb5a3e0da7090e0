// Writes the lines of the access log; framework/access_log.h describes their format.
#pragma once

#include <tuza/http/middleware.h>
#include <tuza/http/refused_request.h>

#include <cstdint>

namespace tuza::logging {

// Queues the line for a request that has been answered with `status`. The times are readings of rt::now_ns();
// `ended_ns` must have been taken just before the call. Does not park.
void log_request(const http::Request& request, const http::ResponseWriter& response, int status,
                 std::int64_t begun_ns, std::int64_t ended_ns);

// Queues the line for a request that the server has refused. Does not park.
void log_refused(const http::RefusedRequest& refused);

}  // namespace tuza::logging
