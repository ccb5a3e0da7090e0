// The line of the access log; what it looks like: framework/access_log.h.
#pragma once

#include <tuza/http/middleware.h>

#include <cstdint>

namespace tuza::logging {

// Queues the line of a request that has been answered with `status`. Times are readings of rt::now_ns(), the
// second one taken just now. Does not park.
void log_request(const http::Request& request, const http::ResponseWriter& response, int status,
                 std::int64_t begun_ns, std::int64_t ended_ns);

}  // namespace tuza::logging
