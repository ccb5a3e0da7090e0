#include <tuza/sched/time/rate.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace tuza::rate {
namespace {

constexpr std::int64_t kForeverNs = kForever.count();

std::int64_t ns_of(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// The time in which `tokens` accrue.
std::int64_t ns_for(Limit limit, double tokens) {
  if (!(limit > 0)) return kForeverNs;
  const double ns = tokens / limit * 1e9;
  return ns >= 9.2e18 ? kForeverNs : static_cast<std::int64_t>(ns);
}

// The number of tokens that accrue in that time.
double tokens_in(Limit limit, double ns) { return limit > 0 ? ns / 1e9 * limit : 0; }

std::int64_t add_ns(std::int64_t time, std::int64_t duration) {
  return rt::time_after(time, std::chrono::nanoseconds(duration));
}

}  // namespace

Limit every(rt::AnyDuration interval) {
  const std::int64_t ns = interval.duration.count();
  return ns <= 0 ? kInfinite : 1e9 / static_cast<double>(ns);
}

std::chrono::nanoseconds Reservation::delay() const {
  return delay_from(TimePoint(std::chrono::nanoseconds(rt::clock_now_ns())));
}

std::chrono::nanoseconds Reservation::delay_from(TimePoint now) const {
  if (!ok_) return kForever;
  const std::int64_t now_ns = ns_of(now);
  if (act_ns_ <= now_ns) return std::chrono::nanoseconds(0);
  // Computed unsigned: the difference may not fit into 63 bits.
  const std::uint64_t left = static_cast<std::uint64_t>(act_ns_) - static_cast<std::uint64_t>(now_ns);
  return std::chrono::nanoseconds(std::min(left, static_cast<std::uint64_t>(kForeverNs)));
}

void Reservation::cancel() { cancel_at(TimePoint(std::chrono::nanoseconds(rt::clock_now_ns()))); }

void Reservation::cancel_at(TimePoint now) {
  if (ok_) limiter_->give_back(*this, ns_of(now));
}

Limit Limiter::limit() const {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  return limit_;
}

int Limiter::burst() const {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  return burst_;
}

double Limiter::tokens_at_ns(std::int64_t now_ns) const {
  // Computed in doubles: the difference may not fit into 64 bits.
  const double elapsed = std::max(static_cast<double>(now_ns) - static_cast<double>(last_ns_), 0.0);
  const double exact = last_ns_ > 0 && now_ns > last_ns_ ? static_cast<double>(now_ns - last_ns_) : elapsed;
  return std::min(tokens_ + tokens_in(limit_, exact), static_cast<double>(burst_));
}

void Limiter::settle(std::int64_t now_ns) {
  tokens_ = tokens_at_ns(now_ns);
  last_ns_ = now_ns;
}

double Limiter::tokens() const { return tokens_at(TimePoint(std::chrono::nanoseconds(rt::clock_now_ns()))); }

double Limiter::tokens_at(TimePoint now) const {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  return tokens_at_ns(ns_of(now));
}

Reservation Limiter::take(std::int64_t now_ns, int n, std::int64_t wait_max_ns) {
  if (n < 0) rt::fatal("rate::Limiter: negative number of tokens");
  const rt::Enter rt;
  const LockGuard lock(lock_);
  Reservation result;
  result.limiter_ = this;
  result.limit_ = limit_;
  if (limit_ == kInfinite) {
    result.ok_ = true;
    result.tokens_ = n;
    result.act_ns_ = now_ns;
    return result;
  }
  const double tokens = tokens_at_ns(now_ns) - n;
  const std::int64_t wait_ns = tokens < 0 ? ns_for(limit_, -tokens) : 0;
  result.ok_ = n <= burst_ && wait_ns <= wait_max_ns && wait_ns != kForeverNs;
  if (!result.ok_) return result;
  result.tokens_ = n;
  result.act_ns_ = add_ns(now_ns, wait_ns);
  last_ns_ = now_ns;
  tokens_ = tokens;
  last_act_ns_ = result.act_ns_;
  return result;
}

void Limiter::give_back(const Reservation& reservation, std::int64_t now_ns) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (limit_ == kInfinite || reservation.tokens_ == 0 || reservation.act_ns_ < now_ns) return;
  // Later reservations count on these tokens being gone.
  const double later = tokens_in(reservation.limit_, static_cast<double>(last_act_ns_ - reservation.act_ns_));
  const double restored = reservation.tokens_ - later;
  if (restored <= 0) return;
  settle(now_ns);
  tokens_ = std::min(tokens_ + restored, static_cast<double>(burst_));
  if (reservation.act_ns_ != last_act_ns_) return;
  const std::int64_t before = reservation.act_ns_ - ns_for(reservation.limit_, reservation.tokens_);
  if (before >= now_ns) last_act_ns_ = before;
}

bool Limiter::allow() { return take(rt::clock_now_ns(), 1, 0).ok_; }
bool Limiter::allow_n(TimePoint now, int n) { return take(ns_of(now), n, 0).ok_; }
Reservation Limiter::reserve() { return take(rt::clock_now_ns(), 1, kForeverNs); }
Reservation Limiter::reserve_n(TimePoint now, int n) { return take(ns_of(now), n, kForeverNs); }

Result<void> Limiter::wait() { return wait_n(Context::background(), 1); }
Result<void> Limiter::wait(const Context& ctx) { return wait_n(ctx, 1); }
Result<void> Limiter::wait_n(int n) { return wait_n(Context::background(), n); }

Result<void> Limiter::wait_n(const Context& ctx, int n) {
  if (n > burst() && limit() != kInfinite) {
    return std::unexpected(Error::from_errno(EINVAL, "rate wait", "more than the burst"));
  }
  if (ctx.done()) return std::unexpected(ctx.cause());
  const std::int64_t now_ns = rt::clock_now_ns();
  std::int64_t wait_max_ns = kForeverNs;
  if (const std::optional<TimePoint> deadline = ctx.deadline()) wait_max_ns = ns_of(*deadline) - now_ns;
  Reservation reservation = take(now_ns, n, wait_max_ns);
  if (!reservation.ok()) {
    return std::unexpected(Error(Errc::kTimeout, "rate wait", "the context would end first"));
  }
  if (reservation.act_ns_ <= now_ns) return {};
  Result<void> waited = rt::sleep_until_ns(ctx, reservation.act_ns_);
  if (!waited) reservation.cancel();
  return waited;
}

void Limiter::set_limit(Limit limit) {
  set_limit_at(TimePoint(std::chrono::nanoseconds(rt::clock_now_ns())), limit);
}

void Limiter::set_limit_at(TimePoint now, Limit limit) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  settle(ns_of(now));
  limit_ = limit;
}

void Limiter::set_burst(int burst) {
  set_burst_at(TimePoint(std::chrono::nanoseconds(rt::clock_now_ns())), burst);
}

void Limiter::set_burst_at(TimePoint now, int burst) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  settle(ns_of(now));
  burst_ = burst;
}

}  // namespace tuza::rate
