// Public header, part of <tuza/http.h>.
//
// Middleware of a client: code around each request that goes out, as http/middleware.h is around each that comes in.
//
//     const auto signs = [](const tuza::Context& ctx, ClientRequest& request, const ClientNext& next) {
//       request.set_header("Authorization", sign(request.method(), *request.url()));
//       return next(ctx, request);
//     };
//     tuza::http::Client client({.middleware = {logs, signs}});  // logs is the outermost
//
// It is called for each hop: for the request of Client::send(), and for each that a redirect asks for; so it sees redirects as
// responses, and signs each request for the server that gets it. Credentials that a redirect to another origin must not have are
// removed before; those that middleware adds are its own to decide. `request.url()` is where the hop goes, and may be set.
//
// Middleware may call next() once, several times, or never: then it returns an error of its own. A response that it does not
// return ends. What it changes of the URL and of the header fields counts for what is further inside, and ends with it: neither
// the middleware around it nor the owner of the ClientRequest sees it. A body that it sets stays.
//
// `ctx` ends with the call's context, and with ClientOptions::timeout. It counts until the end of the response's body: a context
// that middleware makes of it must outlive the response. An exception leaves Client::send() as it is.
//
// It must be thread-safe, as a handler, and copyable: copies of ClientOptions share what it refers to. A client without
// middleware pays nothing; with it, a call copies URL and fields once more.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>

#include <cstddef>
#include <functional>

namespace tuza {
class Context;
}

namespace tuza::http {

class ClientRequest;
class ClientResponse;
class MiddlewareChain;

// The rest of the way: the next middleware, or the client itself. Valid until the middleware that was given it returns.
class ClientNext {
 public:
  // As Client::send(), for one hop. ClientRequest::sent() then speaks of this call alone. Parks.
  [[nodiscard]] Result<ClientResponse> operator()(const Context& ctx, ClientRequest& request) const;

 private:
  friend class MiddlewareChain;
  ClientNext(MiddlewareChain& chain, std::size_t index) : chain_(chain), index_(index) {}

  MiddlewareChain& chain_;
  std::size_t index_;  // of the middleware to call
};

using ClientMiddleware =
    std::function<Result<ClientResponse>(const Context& ctx, ClientRequest& request, const ClientNext& next)>;

}  // namespace tuza::http
