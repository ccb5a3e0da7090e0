// A Request or ResponseWriter, for the time of one handler.
#pragma once

#include <tuza/sched/arch/sanitizer.h>

#include <memory>
#include <type_traits>

namespace tuza::http {

class Exchange;

// With AddressSanitizer it has memory of its own, which is freed when the handler returns. A goroutine that still uses it is then
// reported as a use of freed memory, with the stack of its use and that of this end. On the connection's stack it would find
// what stands there by then, such as the next request.
template <class T>
class HandlerArgument {
 public:
  explicit HandlerArgument(Exchange& exchange) : value_(made(exchange)) {}
  HandlerArgument(const HandlerArgument&) = delete;
  HandlerArgument& operator=(const HandlerArgument&) = delete;

  [[nodiscard]] T& operator*() {
    if constexpr (rt::kAsan) {
      return *value_;
    } else {
      return value_;
    }
  }
  [[nodiscard]] T* operator->() { return &**this; }

 private:
  using Value = std::conditional_t<rt::kAsan, std::unique_ptr<T>, T>;

  static Value made(Exchange& exchange) {
    if constexpr (rt::kAsan) {
      return std::make_unique<T>(exchange);
    } else {
      return T(exchange);
    }
  }

  Value value_;
};

}  // namespace tuza::http
