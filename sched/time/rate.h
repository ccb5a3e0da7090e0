// Public header, part of <tuza/time.h>.
//
// rate::Limiter: limits how often something may happen, with bursts: a token bucket.
//
//     tuza::rate::Limiter limiter(100, 20);            // 100 a second, 20 at once
//     for (Job& job : jobs) {
//       if (auto ok = limiter.wait(ctx); !ok) return ok;
//       job.run();
//     }
//
//     if (!limiter.allow()) return too_many_requests();
//
// The bucket holds `burst` tokens, starts full, and gains `limit` tokens per second. An event takes one
// token, or n. allow() takes the tokens if they are available. reserve() takes them in advance, and returns
// how long to wait before acting. wait() does this waiting. Reservations may make the bucket negative; later
// callers then wait longer: first come, first served.
//
// Semantics of golang.org/x/time/rate. Calls with a time `now` are for simulations and tests; times may go
// backwards, which adds no tokens.
//
// Thread-safe; any thread. All calls except wait() also work outside tuza::run. Only wait() parks. No
// allocation.
// Lifetime: must outlive its reservations and its waiters.
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

// Events per second. Zero or less: only the first burst.
using Limit = double;
inline constexpr Limit kInfinite = std::numeric_limits<double>::infinity();  // always allowed, any burst
// One event every `interval`; kInfinite if the interval is not positive.
[[nodiscard]] Limit every(rt::AnyDuration interval);

// The delay of an event that can never happen.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

class Limiter;

// Tokens taken for a future time. A value; thread-compatible.
class Reservation {
 public:
  // Whether the tokens can be had: false if they exceed the burst.
  [[nodiscard]] bool ok() const { return ok_; }
  // The time to wait before acting; 0: none. kForever if not ok().
  [[nodiscard]] std::chrono::nanoseconds delay() const;
  [[nodiscard]] std::chrono::nanoseconds delay_from(TimePoint now) const;
  // The owner will not act: gives back the tokens on which no later reservation depends. Does nothing once
  // the time to act has come.
  void cancel();
  void cancel_at(TimePoint now);

 private:
  friend class Limiter;
  Limiter* limiter_ = nullptr;
  bool ok_ = false;
  int tokens_ = 0;
  std::int64_t act_ns_ = 0;
  Limit limit_ = 0;  // the limiter's limit at the time of the reservation
};

class Limiter {
 public:
  Limiter(Limit limit, int burst) : limit_(limit), burst_(burst), tokens_(burst) {}
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  [[nodiscard]] Limit limit() const;
  [[nodiscard]] int burst() const;
  // Tokens in the bucket; negative: reserved in advance.
  [[nodiscard]] double tokens() const;
  [[nodiscard]] double tokens_at(TimePoint now) const;

  // Whether the event may happen now; takes its tokens if so. n < 0 is a programming error, and fatal, here
  // and below.
  [[nodiscard]] bool allow();
  [[nodiscard]] bool allow_n(TimePoint now, int n);

  [[nodiscard]] Reservation reserve();
  [[nodiscard]] Reservation reserve_n(TimePoint now, int n);

  // Waits until the event may happen. Errors: EINVAL if n exceeds the burst; Errc::kTimeout at once if the
  // context would end first; the context's cause if the context does end. No tokens are taken then. Parks (a
  // thread blocks).
  [[nodiscard]] Result<void> wait();
  [[nodiscard]] Result<void> wait(const Context& ctx);
  [[nodiscard]] Result<void> wait_n(int n);
  [[nodiscard]] Result<void> wait_n(const Context& ctx, int n);

  // Effective from now on. Existing reservations keep their times.
  void set_limit(Limit limit);
  void set_limit_at(TimePoint now, Limit limit);
  void set_burst(int burst);
  void set_burst_at(TimePoint now, int burst);

 private:
  friend class Reservation;

  [[nodiscard]] double tokens_at_ns(std::int64_t now_ns) const TUZA_REQUIRES(lock_);
  void settle(std::int64_t now_ns) TUZA_REQUIRES(lock_);
  Reservation take(std::int64_t now_ns, int n, std::int64_t wait_max_ns);
  void give_back(const Reservation& reservation, std::int64_t now_ns);

  mutable rt::SpinLock lock_;
  Limit limit_ TUZA_GUARDED_BY(lock_);
  int burst_ TUZA_GUARDED_BY(lock_);
  double tokens_ TUZA_GUARDED_BY(lock_);  // at last_ns_
  std::int64_t last_ns_ TUZA_GUARDED_BY(lock_) = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_act_ns_ TUZA_GUARDED_BY(lock_) =
      std::numeric_limits<std::int64_t>::min();  // time of the latest reservation
};

}  // namespace rate
}  // namespace tuza
