// Helpers shared by the tests of the Asio bridge.
#pragma once

#include <tuza/framework/asio_bridge.h>

#include <asio/io_context.hpp>

#include <utility>

namespace tuza::testing {

// An operation with a given signature, which `start(handler)` performs.
template <class Signature, class Token, class Start>
auto operation(Token&& token, Start start) {
  return asio::async_initiate<Token, Signature>(
      [start = std::move(start)](auto&& handler) mutable { start(std::forward<decltype(handler)>(handler)); },
      token);
}

template <class Start>
struct InitiationOn {
  using executor_type = asio::io_context::executor_type;
  [[nodiscard]] executor_type get_executor() const { return io.get_executor(); }
  void operator()(auto&& handler) { start(std::forward<decltype(handler)>(handler)); }
  asio::io_context& io;
  Start start;
};

// The same, and it has an executor, as an operation that is to be cancelled must.
template <class Signature, class Token, class Start>
auto operation_on(asio::io_context& io, Token&& token, Start start) {
  return asio::async_initiate<Token, Signature>(InitiationOn<Start>{io, std::move(start)}, token);
}

}  // namespace tuza::testing
