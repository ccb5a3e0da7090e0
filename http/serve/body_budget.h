// The memory of all request bodies that the handlers of one server hold as a whole (Request::body(), form(), json()), and of
// the messages of its WebSockets.
//
// body_bytes_max limits each of them; without a limit on all together, some hundreds of clients that upload slowly hold
// gigabytes. Bytes count when they arrive, not when they are announced: an announcement costs nothing, and must not keep
// others out.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

namespace tuza::http {

class BodyBudget {
 public:
  // 0: no limit.
  explicit BodyBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Takes as many bytes, or none.
  [[nodiscard]] bool try_take(std::size_t bytes) {
    std::size_t held = held_.load(std::memory_order_relaxed);
    do {
      if (bytes_max_ != 0 && bytes > bytes_max_ - (held < bytes_max_ ? held : bytes_max_)) return false;
      // Relaxed: the number guards no other memory.
    } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Nobody holds any: connections whose goroutines have ended with their runtime have given nothing back.
  void clear() { held_.store(0, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> held_{0};
};

}  // namespace tuza::http
