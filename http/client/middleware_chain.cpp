#include <tuza/http/client/middleware_chain.h>

#include <tuza/http/client/exchange.h>

#include <utility>

namespace tuza::http {

Result<ClientResponse> ClientNext::operator()(const Context& ctx, ClientRequest& request) const {
  return chain_.call(index_, ctx, request);
}

MiddlewareChain::PutBack::PutBack(ClientRequest& request)
    : request_(request), method_(request.method_), url_(request.url_), fields_(request.fields_) {}

MiddlewareChain::PutBack::~PutBack() {
  request_.method_ = method_;
  request_.url_ = std::move(url_);
  request_.fields_ = std::move(fields_);
}

MiddlewareChain::MiddlewareChain(ClientState& state, const Context& ctx, net::TimePoint deadline,
                                 ClientRequest& request)
    : state_(state),
      deadline_(deadline),
      limited_(deadline == net::kNoDeadline ? CancellableContext() : with_deadline(ctx, deadline)),
      ctx_(deadline == net::kNoDeadline ? ctx : limited_.ctx()),
      request_(request),
      put_back_(request) {}

MiddlewareChain::~MiddlewareChain() { request_.without_body_ = false; }

Result<ClientResponse> MiddlewareChain::pass(const Hop& hop) {
  request_.method_ = hop.method;
  if (hop.own_url) request_.url_ = *hop.own_url;
  if (hop.own_fields) request_.fields_ = *hop.own_fields;
  request_.without_body_ = !hop.with_body;
  return call(0, ctx_, request_);
}

Result<ClientResponse> MiddlewareChain::call(std::size_t index, const Context& ctx, ClientRequest& request) {
  const auto& middleware = state_.options().middleware;
  if (index == middleware.size()) return send(ctx, request);
  const PutBack put_back(request);
  return middleware[index](ctx, request, ClientNext(*this, index + 1));
}

Result<ClientResponse> MiddlewareChain::send(const Context& ctx, ClientRequest& request) {
  request.sent_ = false;
  request.got_place_ = true;
  if (Result<void> sound = ClientState::check(request); !sound) return std::unexpected(sound.error());
  Result<ClientResponse> response = state_.once(ctx, deadline_, state_.hop_of(request));
  sent_ = sent_ || response || request.sent_;
  return response;
}

// A body may still be sent beside its response, and says itself that it was.
void MiddlewareChain::finish(Result<ClientResponse>& response) {
  if (response) {
    response->exchange().hold(std::move(limited_.canceller()));
  } else {
    request_.sent_ = sent_;
  }
}

}  // namespace tuza::http
