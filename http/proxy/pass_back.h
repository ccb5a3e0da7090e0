// The answer of an upstream, on its way to the client.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/result.h>

namespace tuza::http {

// An interim response (1xx), which a proxy has to pass on (RFC 9110 15.2). A client that has gone is seen when the response is
// written. Parks.
void pass_interim(Request& req, int status, const ReceivedHeaders& headers);
// Status, fields, body and trailers, each as it arrives. An error is one of the upstream: unless the head has been sent, the
// client needs another answer. Parks.
[[nodiscard]] Result<void> pass_back(Request& req, ResponseWriter& res, ClientResponse& answer,
                                     const ReverseProxyOptions& options);
// An answer with 101: passes bytes on in both directions, until both have ended, nothing has moved
// for too long, or the server begins to shut down. Parks.
[[nodiscard]] Result<void> pass_tunnel(Request& req, ResponseWriter& res, ClientResponse& answer,
                                       const ReverseProxyOptions& options);

}  // namespace tuza::http
