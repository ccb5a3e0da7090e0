// Public header, part of <tuza/time.h>.
//
// rate::Limiter: how often something may happen, with bursts: a token bucket.
//
//     tuza::rate::Limiter limiter(100, 20);            // 100 a second, 20 at once
//     for (Job& job : jobs) {
//       if (auto ok = limiter.wait(ctx); !ok) return ok;
//       job.run();
//     }
//
//     if (!limiter.allow()) return too_many_requests();
//
// The bucket holds `burst` tokens, is full at first, and gets `limit` tokens a second. An event takes one, or
// n. allow() takes them if they are there; reserve() takes them in advance, and says how long to wait before
// acting; wait() does that waiting. Reservations may make the bucket negative, and those who come later wait
// for longer: first come, first served.
//
// Semantics of golang.org/x/time/rate. Calls with a time `now` are for simulations and tests; times may go
// backwards, which adds no tokens.
//
// Thread-safe; any thread, and but for waiting also outside tuza::run. Only wait() parks. No allocation.
// Lifetime: must outlive its reservations and those who wait.
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace tuza {

class Context;

namespace rate {

using TimePoint = std::chrono::steady_clock::time_point;

// Events a second. Zero or less: none but the first burst.
using Limit = double;
inline constexpr Limit kInfinite = std::numeric_limits<double>::infinity();  // always allowed, burst or not
// One event every `interval`; kInfinite if that is not positive.
[[nodiscard]] Limit every(rt::AnyDuration interval);

// What cannot happen at all has to wait for so long.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

class Limiter;

// Tokens taken for a time to come. A value; thread-compatible.
class Reservation {
 public:
  // Whether they can be had: not if they are more than the burst.
  [[nodiscard]] bool ok() const { return ok_; }
  // How long to wait before acting; 0: not at all. kForever if not ok().
  [[nodiscard]] std::chrono::nanoseconds delay() const;
  [[nodiscard]] std::chrono::nanoseconds delay_from(TimePoint now) const;
  // Its owner will not act: gives back what nobody has reserved upon meanwhile. Nothing, once it was time to
  // act.
  void cancel();
  void cancel_at(TimePoint now);

 private:
  friend class Limiter;
  Limiter* limiter_ = nullptr;
  bool ok_ = false;
  int tokens_ = 0;
  std::int64_t act_ns_ = 0;
  Limit limit_ = 0;  // of the limiter at that time
};

class Limiter {
 public:
  Limiter(Limit limit, int burst) : limit_(limit), burst_(burst), tokens_(burst) {}
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  [[nodiscard]] Limit limit() const;
  [[nodiscard]] int burst() const;
  // Tokens in the bucket; negative: reserved already.
  [[nodiscard]] double tokens() const;
  [[nodiscard]] double tokens_at(TimePoint now) const;

  // Whether the event may happen now. n < 0 is a mistake, and fatal, here and below.
  [[nodiscard]] bool allow();
  [[nodiscard]] bool allow_n(TimePoint now, int n);

  [[nodiscard]] Reservation reserve();
  [[nodiscard]] Reservation reserve_n(TimePoint now, int n);

  // Waits until the event may happen. Errors: EINVAL if n is more than the burst; Errc::kTimeout at once if
  // the context would end before; the context's cause if it does end. Nothing is taken then. Parks (a thread
  // blocks).
  Result<void> wait();
  Result<void> wait(const Context& ctx);
  Result<void> wait_n(int n);
  Result<void> wait_n(const Context& ctx, int n);

  // From now on. Reservations that have been made keep their times.
  void set_limit(Limit limit);
  void set_limit_at(TimePoint now, Limit limit);
  void set_burst(int burst);
  void set_burst_at(TimePoint now, int burst);

 private:
  friend class Reservation;

  [[nodiscard]] double tokens_at_ns(std::int64_t now_ns) const;  // with lock_ held
  void settle(std::int64_t now_ns);                              // with lock_ held
  Reservation take(std::int64_t now_ns, int n, std::int64_t wait_max_ns);
  void give_back(const Reservation& reservation, std::int64_t now_ns);

  // All guarded by lock_.
  mutable rt::SpinLock lock_;
  Limit limit_;
  int burst_;
  double tokens_;  // at last_ns_
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_act_ns_ = std::numeric_limits<std::int64_t>::min();  // latest reservation's
};

}  // namespace rate
}  // namespace tuza
