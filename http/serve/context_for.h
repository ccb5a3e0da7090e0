// Another context for the handlers behind a middleware, until the end of a scope.
//
// Thread-unsafe: owned by the handler's goroutine.
#pragma once

#include <tuza/http/serve/exchange.h>
#include <tuza/sched/sync/context.h>

#include <utility>

namespace tuza::http {

class ContextFor {
 public:
  // `context` is made from the one of the request.
  ContextFor(Exchange& exchange, const Context& context)
      : exchange_(exchange), outer_(exchange.exchange_contexts({.context = context})) {}
  ContextFor(const ContextFor&) = delete;
  ContextFor& operator=(const ContextFor&) = delete;
  ~ContextFor() { exchange_.exchange_contexts(std::move(outer_)); }

 private:
  Exchange& exchange_;
  Exchange::Contexts outer_;
};

}  // namespace tuza::http
