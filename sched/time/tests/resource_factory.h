// What the tests of ResourcePool keep in their pools.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/resource_pool.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

namespace tuza::testing {

inline const Context kAlways = Context::background();

// Numbered resources, and how many of them exist.
struct Factory {
  struct Thing {
    Thing(Factory& made_by, int number) : factory(&made_by), id(number) {
      const int alive = ++factory->alive;
      for (int most = factory->most_alive;
           alive > most && !factory->most_alive.compare_exchange_weak(most, alive);) {
      }
    }
    Thing(Thing&& other) noexcept : factory(std::exchange(other.factory, nullptr)), id(other.id) {}
    Thing& operator=(Thing&&) = delete;
    ~Thing() {
      if (factory == nullptr) return;
      if (factory->at_end) factory->at_end();
      --factory->alive;
    }
    Factory* factory;
    int id;
  };

  Result<Thing> open(const Context& ctx) {
    if (ctx.done()) return std::unexpected(ctx.cause());
    if (fails) return std::unexpected(Error::from_errno(ECONNREFUSED, "open"));
    return Thing(*this, ++last);
  }
  ResourcePool<Thing>::Options options(const ResourceLimits& limits) {
    return {.open = [this](const Context& ctx) { return open(ctx); }, .limits = limits};
  }

  std::atomic<int> last = 0, alive = 0, most_alive = 0;
  std::atomic<bool> fails = false;
  std::function<void()> at_end;  // of a resource
};
using Things = ResourcePool<Factory::Thing>;

}  // namespace tuza::testing
