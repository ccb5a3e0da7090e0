#include <tuza/sched/time/detail/resource_places.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/rt/base/random.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tuza::detail {
namespace {

constexpr std::int64_t kNeverNs = rt::kEndOfTimeNs;

Error pool_closed() { return {Errc::kClosed, "resource pool"}; }

std::int64_t limit_from(std::int64_t now_ns, std::chrono::nanoseconds limit) {
  return limit.count() <= 0 ? kNeverNs : rt::time_after(now_ns, limit);
}

}  // namespace

ResourcePlaces::ResourcePlaces(const ResourceLimits& limits)
    : limits_(limits), seed_(static_cast<std::uint64_t>(rt::clock_now_ns())), sweep_ns_(kNeverNs) {}

Result<ResourcePlaces::Owner> ResourcePlaces::take(const Context& ctx) {
  if (const Result<void> going_on = ctx.check(); !going_on) return std::unexpected(going_on.error());
  Owner given;
  bool served = false;
  std::list<Waiter>::iterator me;
  {
    const LockGuard lock(mutex_);
    if (closed_) return std::unexpected(pool_closed());
    std::optional<ResourceEnd> over;
    served = take_now(given, over);
    if (over) count(*over);
    if (served && !over) {
      if (given != nullptr) given->taken_ns = rt::clock_now_ns();
      return given;
    }
    if (!served) {
      const std::optional<std::chrono::steady_clock::time_point> until = ctx.deadline();
      me = waiters_.emplace(waiters_.end(), until ? until->time_since_epoch().count() : kNeverNs);
      ++stats_.waited;
    }
  }
  if (served) return nullptr;  // a place: `given` was idle for too long, and ends here
  const std::int64_t began_ns = rt::clock_now_ns();
  const Result<void> woken = me->ready.acquire(ctx);
  {
    const LockGuard lock(mutex_);
    stats_.wait_time += std::chrono::nanoseconds(rt::clock_now_ns() - began_ns);
    served = me->served;
    given = std::move(me->given);
    (served || closed_ ? woken_ : me->late ? late_ : waiters_).erase(me);
  }
  if (!served) return std::unexpected(woken ? pool_closed() : woken.error());
  if (woken) return given;
  if (given != nullptr) {
    given->taken_ns = 0;  // it was not used
    give_back(std::move(given));
  } else {
    free_place();
  }
  return std::unexpected(woken.error());
}

// False: there is none. `over`: the caller must destroy what it was given, and has a place without a resource.
bool ResourcePlaces::take_now(Owner& given, std::optional<ResourceEnd>& over) {
  if (!idle_.empty()) {
    given = std::move(idle_.back());
    idle_.pop_back();
    over = over_at(*given, rt::clock_now_ns());
    return true;
  }
  if (limits_.open_max != 0 && stats_.open >= limits_.open_max) return false;
  if (idle_.capacity() <= stats_.open) idle_.reserve(2 * (stats_.open + 1));
  ++stats_.open;
  return true;
}

std::optional<ResourceEnd> ResourcePlaces::over_at(const Resource& resource, std::int64_t now_ns) {
  if (resource.lives_until_ns <= now_ns) return ResourceEnd::kLife;
  if (resource.idle_until_ns <= now_ns) return ResourceEnd::kIdleTimeout;
  return std::nullopt;
}

void ResourcePlaces::serve(Owner given) {
  std::list<Waiter>& from = waiters_to_serve();
  Waiter& next = from.front();
  woken_.splice(woken_.end(), from, from.begin());
  if (given != nullptr) given->taken_ns = rt::clock_now_ns();
  next.given = std::move(given);
  next.served = true;
  next.ready.release();
}

// The list whose first waiter is the next. With twice the usual time, most uses end in time.
std::list<ResourcePlaces::Waiter>& ResourcePlaces::waiters_to_serve() {
  const std::int64_t enough_ns = rt::clock_now_ns() + 2 * use_ns_;
  while (!waiters_.empty() && waiters_.front().until_ns < enough_ns) {
    waiters_.front().late = true;
    late_.splice(late_.end(), waiters_, waiters_.begin());
  }
  return waiters_.empty() ? late_ : waiters_;
}

// A moving average over some eight uses.
void ResourcePlaces::note_use(const Resource& resource) {
  if (resource.taken_ns != 0) use_ns_ += (rt::clock_now_ns() - resource.taken_ns - use_ns_) / 8;
}

void ResourcePlaces::free_places(std::size_t count) {
  const LockGuard lock(mutex_);
  for (; count > 0 && anybody_waits(); --count) serve(nullptr);  // the place goes over
  stats_.open -= count;
}

void ResourcePlaces::free_place() { free_places(1); }

// Nullopt: it has been given to a caller that waits, or is idle. Otherwise it must end.
std::optional<ResourceEnd> ResourcePlaces::keep(Owner& resource) {
  const LockGuard lock(mutex_);
  const std::int64_t now_ns = rt::clock_now_ns();
  note_use(*resource);
  std::optional<ResourceEnd> why;
  if (closed_) {
    why = ResourceEnd::kClosed;
  } else if (resource->lives_until_ns <= now_ns) {
    why = ResourceEnd::kLife;
  } else if (anybody_waits()) {
    serve(std::move(resource));
  } else if (idle_.size() >= limits_.idle_max) {
    why = ResourceEnd::kIdleMax;
  } else {
    resource->idle_until_ns = limit_from(now_ns, limits_.idle_timeout);
    sweep_by(std::min(resource->idle_until_ns, resource->lives_until_ns));
    idle_.push_back(std::move(resource));
  }
  if (why) count(*why);
  return why;
}

void ResourcePlaces::give_back(Owner resource) {
  if (!keep(resource)) return;
  resource.reset();
  free_place();
}

void ResourcePlaces::end(Owner resource, ResourceEnd why) {
  destroy(std::move(resource), why);
  free_place();
}

void ResourcePlaces::destroy(Owner resource, ResourceEnd why) {
  {
    const LockGuard lock(mutex_);
    if (why == ResourceEnd::kBroken) note_use(*resource);
    count(why);
  }
  resource.reset();
}

void ResourcePlaces::opened(Resource* resource) {
  const LockGuard lock(mutex_);
  ++(resource != nullptr ? stats_.opened : stats_.open_failed);
  if (resource == nullptr) return;
  constexpr std::uint32_t kSteps = 1 << 16;
  const auto most = limits_.life_max.count();
  const auto less =
      static_cast<std::int64_t>(static_cast<double>(most) / 10 * rt::Random(seed_++).below(kSteps) / kSteps);
  resource->taken_ns = rt::clock_now_ns();
  resource->lives_until_ns = limit_from(rt::clock_now_ns(), std::chrono::nanoseconds(most - less));
}

void ResourcePlaces::count(ResourceEnd why) {
  switch (why) {
    case ResourceEnd::kIdleTimeout: ++stats_.closed_idle_timeout; break;
    case ResourceEnd::kIdleMax: ++stats_.closed_idle_max; break;
    case ResourceEnd::kLife: ++stats_.closed_life; break;
    case ResourceEnd::kCheck: ++stats_.closed_check; break;
    case ResourceEnd::kBroken: ++stats_.closed_broken; break;
    case ResourceEnd::kClosed: ++stats_.closed_at_end; break;
  }
}

// The sweeper is to run at that time, or before.
void ResourcePlaces::sweep_by(std::int64_t when_ns) {
  if (when_ns >= sweep_ns_) return;
  sweep_ns_ = when_ns;
  const std::chrono::nanoseconds delay(when_ns - rt::clock_now_ns());
  if (sweeper_) {
    sweeper_->reset(delay);
    return;
  }
  sweeper_ = after_func(delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sweep();
  });
}

// Destroys what has been idle for too long, or is too old.
void ResourcePlaces::sweep() {
  std::vector<Owner> ended;
  {
    const LockGuard lock(mutex_);
    const std::int64_t now_ns = rt::clock_now_ns();
    std::int64_t next_ns = kNeverNs;
    for (Owner& resource : idle_) {
      if (const std::optional<ResourceEnd> over = over_at(*resource, now_ns)) {
        count(*over);
        ended.push_back(std::move(resource));
      } else {
        next_ns = std::min({next_ns, resource->idle_until_ns, resource->lives_until_ns});
      }
    }
    std::erase(idle_, nullptr);
    sweep_ns_ = kNeverNs;
    sweep_by(next_ns);
  }
  const std::size_t places = ended.size();
  ended.clear();
  free_places(places);
}

void ResourcePlaces::close() {
  std::vector<Owner> ended;
  {
    const LockGuard lock(mutex_);
    closed_ = true;
    for (std::list<Waiter>* waiters : {&waiters_, &late_}) {
      for (Waiter& waiter : *waiters) waiter.ready.release();
      woken_.splice(woken_.end(), *waiters);
    }
    ended = std::exchange(idle_, {});
    stats_.closed_at_end += ended.size();
  }
  const std::size_t places = ended.size();
  ended.clear();
  free_places(places);
}

ResourceStats ResourcePlaces::stats() const {
  const LockGuard lock(mutex_);
  ResourceStats stats = stats_;
  stats.idle = idle_.size();
  stats.in_use = stats_.open - idle_.size();
  stats.waiting = waiters_.size() + late_.size();
  return stats;
}

}  // namespace tuza::detail
