// Ends a context when nothing has moved for a while.
//
// Whoever moves bytes counts, and a timer looks from time to time whether the count has changed: a portion costs one addition,
// and no clock is read. Hence an end comes late by up to a quarter of the timeout, and never early.
//
// moved() is thread-safe. Must not be destroyed while others use it.
#pragma once

#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/after_func.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace tuza::net {

class IdleWatch {
 public:
  // 0: it ends nothing, and costs nothing. Otherwise inside tuza::run only.
  IdleWatch(const Context& parent, std::chrono::milliseconds timeout);
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;
  ~IdleWatch();

  // `parent`, or a child of it; its cause is a timeout if nothing has moved.
  [[nodiscard]] const Context& ctx() const { return ctx_; }
  void moved() { moves_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Lifeline;  // shared with the timer's function, which may run while the watch is being destroyed
  void look();

  const std::chrono::nanoseconds between_looks_;
  const CancellableContext watched_;
  const Context ctx_;
  std::atomic<std::uint64_t> moves_ = 0;  // relaxed: a count, by which nothing else is published
  std::uint64_t seen_ = 0;                // these two: of look(), under the lifeline's mutex
  int looks_in_vain_ = 0;
  std::shared_ptr<Lifeline> lifeline_;
  DelayedCall next_look_;
};

}  // namespace tuza::net
