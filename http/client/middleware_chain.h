// The way of one call through the middleware of its client: first to last, then to the server.
//
// Middleware changes the caller's own request, because a body cannot be copied: its source may be read only once, and a text
// may be large. What it changes besides is put back when it returns.
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
  ~MiddlewareChain();

  // `hop` by way of the middleware.
  [[nodiscard]] Result<ClientResponse> pass(const Hop& hop);
  // To the middleware of that index, or behind the last one to the server.
  [[nodiscard]] Result<ClientResponse> call(std::size_t index, const Context& ctx, ClientRequest& request);
  // What the call has come to.
  void finish(Result<ClientResponse>& response);

 private:
  // What a request is at first, until the end of a scope.
  class PutBack {
   public:
    explicit PutBack(ClientRequest& request);
    PutBack(const PutBack&) = delete;
    PutBack& operator=(const PutBack&) = delete;
    ~PutBack();

   private:
    ClientRequest& request_;
    const Method method_;
    Result<Url> url_;
    std::string fields_;
  };
  [[nodiscard]] Result<ClientResponse> send(const Context& ctx, ClientRequest& request);

  ClientState& state_;
  const net::TimePoint deadline_;
  CancellableContext limited_;  // to the deadline, if there is one
  const Context ctx_;
  ClientRequest& request_;
  const PutBack put_back_;
  bool sent_ = false;  // by any hop or try
};

}  // namespace tuza::http
