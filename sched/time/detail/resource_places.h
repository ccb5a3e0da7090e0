// The places of a ResourcePool: who may have a resource, who waits for one, and which idle ones are over.
//
//                      place                          give_back()
//     take() --- idle --------> Lease --- in use ---------------> the first caller that waits, or idle
//            `-- none: open ---'       `-- end(): destroyed, then its place goes to the first caller that waits
//
// A place is the right to one resource, within the limit of open ones; it is kept until the resource is destroyed, so there
// are never more of them than places. While a caller waits, no resource is idle and no place is free: whatever becomes
// free goes to the first waiter under the same lock. A waiter is served at most once. If its context ends as well, it finds
// that out under the lock, and passes on what it was given.
//
// The order is that of their coming, but a waiter whose context ends sooner than a use usually takes is passed over while others
// have more time. Otherwise an overloaded pool would serve only those whose time is just over: each would lose its resource in the
// middle of a use, the next would open another one, and no call would succeed any more. Time only grows shorter, so nobody is
// looked at twice for that.
//
// Thread-safe. Only take() parks, except for what the destructors of resources do, which run without the lock.
#pragma once

#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/time/after_func.h>
#include <tuza/sched/time/resource_limits.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace tuza::detail {

// Owned by its lease while in use, otherwise by the pool.
struct Resource {
  Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  virtual ~Resource() = default;
  std::int64_t idle_until_ns = 0, lives_until_ns = 0, taken_ns = 0;
};

enum class ResourceEnd : std::uint8_t { kIdleTimeout, kIdleMax, kLife, kCheck, kBroken, kClosed };

class ResourcePlaces : public std::enable_shared_from_this<ResourcePlaces> {
 public:
  using Owner = std::unique_ptr<Resource>;

  explicit ResourcePlaces(const ResourceLimits& limits);

  // A place, with an idle resource or with none. The context's cause, or Errc::kClosed.
  [[nodiscard]] Result<Owner> take(const Context& ctx);
  // The end of a use: of place and resource, or of one of them. destroy() keeps the place.
  void give_back(Owner resource);
  void end(Owner resource, ResourceEnd why);
  void destroy(Owner resource, ResourceEnd why);
  void free_place();

  // Counts an attempt to open a resource, which has failed unless it is said to have succeeded.
  class Opening {
   public:
    explicit Opening(ResourcePlaces& places) : places_(places) {}
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    ~Opening() { places_.opened(resource_); }
    void succeeded(Resource& resource) const { resource_ = &resource; }

   private:
    ResourcePlaces& places_;
    mutable Resource* resource_ = nullptr;
  };

  void close();
  [[nodiscard]] ResourceStats stats() const;

 private:
  // Not on the stack of its goroutine: at the end of tuza::run that may be left behind in the wait, and its stack goes.
  struct Waiter {
    std::int64_t until_ns;  // when its context ends
    Owner given{};          // null: a place without a resource
    bool served = false;
    bool late = false;  // in late_
    Semaphore ready{0};
  };

  bool take_now(Owner& given, std::optional<ResourceEnd>& over) TUZA_REQUIRES(mutex_);
  [[nodiscard]] static std::optional<ResourceEnd> over_at(const Resource& resource, std::int64_t now_ns);
  void serve(Owner given) TUZA_REQUIRES(mutex_);
  [[nodiscard]] std::list<Waiter>& waiters_to_serve() TUZA_REQUIRES(mutex_);
  [[nodiscard]] bool anybody_waits() const TUZA_REQUIRES(mutex_) {
    return !waiters_.empty() || !late_.empty();
  }
  void note_use(const Resource& resource) TUZA_REQUIRES(mutex_);
  void free_places(std::size_t count);
  [[nodiscard]] std::optional<ResourceEnd> keep(Owner& resource);
  void opened(Resource* resource);
  void count(ResourceEnd why) TUZA_REQUIRES(mutex_);
  void sweep();
  void sweep_by(std::int64_t when_ns) TUZA_REQUIRES(mutex_);

  const ResourceLimits limits_;
  mutable Mutex mutex_;
  ResourceStats stats_ TUZA_GUARDED_BY(mutex_);        // all but in_use, idle and waiting
  std::vector<Owner> idle_ TUZA_GUARDED_BY(mutex_);    // the oldest first; has room for all that are open
  std::list<Waiter> waiters_ TUZA_GUARDED_BY(mutex_);  // in the order of their coming
  std::list<Waiter> late_ TUZA_GUARDED_BY(mutex_);     // of these, those that have been passed over
  std::list<Waiter> woken_ TUZA_GUARDED_BY(mutex_);    // served, or ended by close(); each erases itself
  std::int64_t use_ns_ TUZA_GUARDED_BY(mutex_) = 0;    // how long one usually lasts
  std::uint64_t seed_ TUZA_GUARDED_BY(mutex_);         // of what is subtracted from the next life
  std::optional<DelayedCall> sweeper_ TUZA_GUARDED_BY(mutex_);
  std::int64_t sweep_ns_ TUZA_GUARDED_BY(mutex_);  // when the sweeper runs next
  bool closed_ TUZA_GUARDED_BY(mutex_) = false;
};

}  // namespace tuza::detail
