#include <tuza/http/client/middleware/client_trace.h>

#include <string>

namespace tuza::http {

ClientMiddleware client_trace() {
  return [](const Context& ctx, ClientRequest& request, const ClientNext& next) {
    const std::string* const traceparent = ctx.value(kTraceparent);
    if (traceparent != nullptr && !request.header("traceparent"))
      request.set_header("traceparent", *traceparent);
    return next(ctx, request);
  };
}

}  // namespace tuza::http
