// Public header.
//
// The completion tokens: use_goroutine, use_goroutine(ctx), and use_goroutine.on(executor, ctx).
#pragma once

#include <tuza/sched/sync/context.h>

#include <utility>

namespace tuza {

class UseGoroutineWithin {
 public:
  explicit UseGoroutineWithin(Context ctx) : ctx_(std::move(ctx)) {}
  [[nodiscard]] const Context& context() const { return ctx_; }

 private:
  Context ctx_;
};

template <class Executor>
class UseGoroutineOn {
 public:
  UseGoroutineOn(Executor executor, Context ctx) : executor_(std::move(executor)), ctx_(std::move(ctx)) {}
  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] const Context& context() const { return ctx_; }

 private:
  Executor executor_;
  Context ctx_;
};

struct UseGoroutine {
  UseGoroutineWithin operator()(const Context& ctx) const { return UseGoroutineWithin(ctx); }
  // Begins the operation on `executor`, and cancels it there: for objects that several goroutines share.
  template <class Executor>
  UseGoroutineOn<Executor> on(Executor executor, const Context& ctx = {}) const {
    return {std::move(executor), ctx};
  }
};
inline constexpr UseGoroutine use_goroutine;

}  // namespace tuza
