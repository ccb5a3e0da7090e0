// Public header, part of <tuza/sync.h>.
//
// singleflight: of several callers that want the same result at the same time, one computes it, and all get
// it.
//
//     tuza::singleflight::Group<std::string, Page> pages;
//     auto [page, shared] = pages.call(url, [&] { return render(url); });
//
// While the function for a key runs, further calls with that key do not run their own function: they wait,
// and get a copy of the result, or the exception. This is not a cache: once the function has ended, the next
// call runs its own function.
//
// call(ctx, ...) runs the function in a goroutine of its own. The function therefore continues when the
// context of one caller ends: others may still wait for the result.
//
// Ordering: everything that the function did is visible to all callers that get its result.
// Lifetime: the group may be destroyed when no call is in progress; functions that were started with a
// context may outlive it.
//
// Thread-safe. V is copied, concurrently: use a shared_ptr<const ...> if V is large. All calls park.
// Source: golang.org/x/sync/singleflight.
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/mutex.h>

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace tuza::singleflight {

template <class V>
struct Outcome {
  V value;
  bool shared;  // other callers got the value, too
};

template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
class Group {
 public:
  // Returns the result of `function()`, run here or by another caller that is already running it. If the
  // function ends by goexit(), its waiters get std::future_error (broken_promise).
  template <class F>
  Outcome<V> call(const K& key, F&& function) {
    const auto [flight, mine] = state_->join(key);
    if (mine) {
      fly(*state_, key, flight, function);
    } else {
      flight->done.wait(WaitReason::kFuture);
    }
    return flight->outcome();
  }
  // The same, but returns ctx.cause() if the context ends first; `function` continues then.
  template <class F>
  [[nodiscard]] Result<Outcome<V>> call(const Context& ctx, const K& key, F&& function) {
    if (ctx.done()) return std::unexpected(ctx.cause());
    auto [flight, mine] = state_->join(key);
    if (mine) {
      Landing unless_started(*state_, key, flight);
      go([state = state_, key, flight = flight, captured = std::forward<F>(function)]() mutable {
        fly(*state, key, flight, captured);
      });
      unless_started.dismiss();
    }
    if (!flight->done.wait(WaitReason::kFuture, rt::Until{.event = ctx.event()})) {
      return std::unexpected(ctx.cause());
    }
    return flight->outcome();
  }
  // Calls from now on do not wait for the function that is currently running for `key`, if any.
  void forget(const K& key) {
    const LockGuard lock(state_->mutex);
    state_->flights.erase(key);
  }

 private:
  struct Flight {
    rt::Event done;
    // Written before `done` fires.
    std::optional<V> value;
    std::exception_ptr error;
    bool shared = false;  // guarded by the group's mutex until `done`

    Outcome<V> outcome() const {
      if (error != nullptr) std::rethrow_exception(error);
      return {*value, shared};
    }
  };
  using FlightPtr = std::shared_ptr<Flight>;

  struct State {
    Mutex mutex;
    std::unordered_map<K, FlightPtr, Hash, Equal> flights TUZA_GUARDED_BY(mutex);  // flights in progress

    // The flight in progress, or a new one that the caller must fly (true).
    std::pair<FlightPtr, bool> join(const K& key) {
      const LockGuard lock(mutex);
      const auto [at, added] = flights.try_emplace(key);
      if (!added) {
        at->second->shared = true;
        return {at->second, false};
      }
      try {
        at->second = std::make_shared<Flight>();
      } catch (...) {
        flights.erase(at);
        throw;
      }
      return {at->second, true};
    }
  };

  // The end of a flight, also by goexit(): removes it from the map, and releases all waiters.
  class Landing {
   public:
    Landing(State& state, const K& key, FlightPtr flight)
        : state_(&state), key_(key), flight_(std::move(flight)) {}
    Landing(const Landing&) = delete;
    Landing& operator=(const Landing&) = delete;
    ~Landing() {
      if (state_ == nullptr) return;
      {
        const LockGuard lock(state_->mutex);
        const auto at = state_->flights.find(key_);
        if (at != state_->flights.end() && at->second == flight_) state_->flights.erase(at);
      }
      if (!flight_->value && flight_->error == nullptr) {
        flight_->error = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
      }
      flight_->done.fire();
    }
    void dismiss() { state_ = nullptr; }

   private:
    State* state_;
    const K& key_;
    const FlightPtr flight_;
  };

  template <class F>
  static void fly(State& state, const K& key, const FlightPtr& flight, F& function) {
    const Landing landing(state, key, flight);
    flight->error =
        rt::catch_exception([&] { flight->value.emplace(std::invoke(std::forward<F>(function))); });
  }

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace tuza::singleflight
