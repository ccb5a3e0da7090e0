// Public header, part of <tuza/sync.h>.
//
// ResourcePool: a limited number of resources that are slow to open, such as connections to a database, shared by all
// goroutines.
//
//     tuza::ResourcePool<Client> clients({.open = [](const Context& ctx) { return Client::dial(ctx, "db:7000"); },
//                                         .limits = {.open_max = 8}});
//     auto client = clients.acquire(ctx);                    // waits while all eight are in use
//     if (!client) return std::unexpected(client.error());
//     if (!(*client)->ask(ctx, question)) client->discard(); // broken: it is closed
//
// A resource belongs to one caller at a time. It is opened when it is needed and none is idle, and comes back when its
// Lease ends. The one that came back last is used first, so that those of a busy time grow old and are closed.
//
// Callers that find no place wait, first come, first served, and stop waiting with their context; one whose context ends sooner
// than a use usually takes is passed over while others have more time. What was given to one that stops at the same moment
// goes to the next. If opening fails, the next caller gets the place.
//
// Lifetime: leases may outlive the pool, whose destructor calls close(). No call may be waiting then. It may be destroyed
// after tuza::run, also if goroutines were left behind in acquire().
// Ordering: what was done with a resource is visible to its next user.
// Thread-safe; for the goroutines of one tuza::run. `open`, `check`, `reset` and T's destructor run without a lock held, on
// the goroutine of the call that needs them, or on one of the pool's own; several calls of them may run at once. They may
// park. `reset` and the destructor must not throw.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/detail/resource_places.h>
#include <tuza/sched/time/resource_limits.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace tuza {

template <class T>
class ResourcePool {
  struct Opened : detail::Resource {
    explicit Opened(T&& opened) : value(std::move(opened)) {}
    T value;
  };
  struct State;

 public:
  struct Options {
    // Opens a resource; the context is that of the caller who needs it.
    std::function<Result<T>(const Context&)> open{};
    // Before an idle one is used again: false closes it, and the caller gets a new one. Null: no check.
    std::function<bool(const Context&, T&)> check{};
    // When one comes back: false closes it. Null: nothing to do.
    std::function<bool(T&)> reset{};
    ResourceLimits limits{};
  };

  // A resource in use. Movable; the destructor gives it back, and may park if `reset` or the destructor of T does.
  class [[nodiscard]] Lease {
   public:
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      Lease ended(std::move(*this));
      state_ = std::move(other.state_);
      resource_ = std::move(other.resource_);
      return *this;
    }
    ~Lease() { give_back(); }

    // Not after discard().
    T& operator*() const { return static_cast<Opened&>(*resource_).value; }
    T* operator->() const { return &**this; }

    // Closes the resource, which is broken. The lease is over.
    void discard() {
      if (const auto state = std::move(state_))
        state->end(std::move(resource_), detail::ResourceEnd::kBroken);
    }

   private:
    friend ResourcePool;
    Lease(std::shared_ptr<State> state, std::unique_ptr<detail::Resource> resource)
        : state_(std::move(state)), resource_(std::move(resource)) {}
    void give_back() noexcept {
      const auto state = std::move(state_);
      if (state == nullptr) return;
      if (resource_ == nullptr) return state->free_place();  // it could not be opened
      if (state->reset && !state->reset(static_cast<Opened&>(*resource_).value)) {
        return state->end(std::move(resource_), detail::ResourceEnd::kBroken);
      }
      state->give_back(std::move(resource_));
    }

    std::shared_ptr<State> state_;  // null: over
    std::unique_ptr<detail::Resource> resource_;
  };

  explicit ResourcePool(Options options) : state_(std::make_shared<State>(std::move(options))) {}
  ResourcePool(const ResourcePool&) = delete;
  ResourcePool& operator=(const ResourcePool&) = delete;
  ~ResourcePool() { close(); }

  // A resource for the caller alone. The error of `open`, the context's cause if it ends first, or Errc::kClosed. Parks.
  [[nodiscard]] Result<Lease> acquire(const Context& ctx) {
    Result<std::unique_ptr<detail::Resource>> given = state_->take(ctx);
    if (!given) return std::unexpected(given.error());
    const std::shared_ptr<State> state = state_;
    Lease lease(state,
                *std::move(given));  // from here on the lease frees the place, also if a function throws
    if (lease.resource_ != nullptr) {
      if (!state->check || state->check(ctx, *lease)) return lease;
      state->destroy(std::move(lease.resource_), detail::ResourceEnd::kCheck);
      if (const Result<void> going_on = ctx.check(); !going_on) return std::unexpected(going_on.error());
    }
    const detail::ResourcePlaces::Opening opening(*state);
    Result<T> opened = state->open(ctx);
    if (!opened) return std::unexpected(opened.error());
    lease.resource_ = std::make_unique<Opened>(*std::move(opened));
    opening.succeeded(*lease.resource_);
    return lease;
  }

  // Calls `function(T&)`, which returns a Result, with a resource that it has for itself. The errors of acquire(), and
  // those of the function. The resource comes back also if the function throws. Parks.
  template <class Function>
  [[nodiscard]] std::invoke_result_t<Function&, T&> use(const Context& ctx, Function function) {
    Result<Lease> lease = acquire(ctx);
    if (!lease) return std::unexpected(lease.error());
    return function(**lease);
  }

  // From now on acquire() returns Errc::kClosed, to those that wait as well. Idle resources are closed now, others when
  // they come back. May be repeated. Parks if the destructor of T does.
  void close() { state_->close(); }

  [[nodiscard]] ResourceStats stats() const { return state_->stats(); }

 private:
  struct State : detail::ResourcePlaces {
    explicit State(Options&& options)
        : ResourcePlaces(options.limits),
          open(std::move(options.open)),
          check(std::move(options.check)),
          reset(std::move(options.reset)) {}
    const std::function<Result<T>(const Context&)> open;
    const std::function<bool(const Context&, T&)> check;
    const std::function<bool(T&)> reset;
  };
  const std::shared_ptr<State> state_;
};

}  // namespace tuza
