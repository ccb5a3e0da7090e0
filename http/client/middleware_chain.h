// The way of one call through the middleware of its client: first to last, then to the server.
//
// Middleware changes the caller's own request, because a body cannot be copied: its source may be read only once, and a text
// may be large. What it changes is put back after the call.
//
// Thread-unsafe, for the length of one call. Parks.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/client/state.h>

#include <cstddef>
#include <string>

namespace tuza::http {

class MiddlewareChain {
 public:
  MiddlewareChain(ClientState& state, const Context& ctx, net::TimePoint deadline, ClientRequest& request);
  MiddlewareChain(const MiddlewareChain&) = delete;
  MiddlewareChain& operator=(const MiddlewareChain&) = delete;
  // Gives the request back as it was.
  ~MiddlewareChain();

  // `hop` by way of the middleware.
  [[nodiscard]] Result<ClientResponse> pass(const Hop& hop);
  // To the middleware of that index, or behind the last one to the server.
  [[nodiscard]] Result<ClientResponse> call(std::size_t index, const Context& ctx, ClientRequest& request);
  // What the call has come to.
  void finish(Result<ClientResponse>& response);

 private:
  [[nodiscard]] Result<ClientResponse> send(const Context& ctx, ClientRequest& request);

  ClientState& state_;
  const net::TimePoint deadline_;
  CancellableContext limited_;  // to the deadline, if there is one
  const Context ctx_;
  ClientRequest& request_;
  const Method method_;
  const Result<Url> url_;
  const std::string fields_;
  bool sent_ = false;  // by any hop or try
};

}  // namespace tuza::http
