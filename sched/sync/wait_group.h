// Public header, part of <tuza/sync.h>.
//
// WaitGroup: waits for goroutines to finish.
//
//     tuza::WaitGroup group;
//     for (Shard& shard : shards) group.go([&shard] { shard.compact(); });
//     group.wait();
//
// Ordering: everything that a goroutine did before done() is visible after the wait() that it released.
// Lifetime: may be destroyed as soon as every wait() has returned and the counter is zero, even while the
// last done() is still returning: done() does not touch the group after it has released the waiters. Earlier it aborts,
// except after the end of tuza::run, which leaves goroutines behind. Reuse:
// a new round may begin when all waits of the previous round have returned.
//
// Thread-safe; any thread, inside and outside tuza::run (except go(): inside only). add() and done() never
// park; wait() parks the goroutine (a thread blocks).
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/go.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/member.h>
#include <tuza/sched/sync/detail/wait.h>

#include <atomic>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

class Context;

class WaitGroup {
 public:
  WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;
  ~WaitGroup();

  // Adds `delta`, which may be negative, to the counter. Aborts if the counter goes below zero.
  void add(std::int32_t delta);
  void done() { add(-1); }

  // Returns when the counter is zero, or has been zero since the call. Parks.
  void wait() { (void)wait_until(rt::Until{}); }
  // Returns the context's cause if the context ends first, or has already ended. The goroutines still run in
  // this case, and the group must outlive them. Parks.
  [[nodiscard]] Result<void> wait(const Context& context);

  // Calls add(1) and tuza::go(options, function, args...). Calls done() when the goroutine has ended, by goexit() too, and the
  // captures of its function, its copies of `args`, and its goroutine-locals are destroyed.
  template <class F>
  void go(const GoOptions& options, F&& function,
          const std::source_location& where = std::source_location::current()) {
    if constexpr (fits<F>()) start(options, where, std::forward<F>(function));
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  void go(const GoOptions& options,
          const std::type_identity_t<rt::MemberFunction<WaitGroup, Args...>>& function, Args&&... args) {
    function.start(rt::MemberStarter<WaitGroup>{*this, options}, std::forward<Args>(args)...);
  }
  // Like go(), but reports the errors of tuza::try_go(). After one, the group is as before, and `function` is destroyed.
  template <class F>
  [[nodiscard]] Result<void> try_go(const GoOptions& options, F&& function,
                                    const std::source_location& where = std::source_location::current()) {
    if constexpr (fits<F>()) {
      add(1);
      rt::UnlessStarted<WaitGroup, &WaitGroup::done> unless_started(*this);
      Result<void> begun = tuza::try_go(options, as_member(std::forward<F>(function)), where);
      if (begun) unless_started.started();
      return begun;
    }
  }
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    go(GoOptions{}, std::forward<F>(function), where);
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  void go(const std::type_identity_t<rt::MemberFunction<WaitGroup, Args...>>& function, Args&&... args) {
    go(GoOptions{}, function, std::forward<Args>(args)...);
  }

 private:
  friend struct rt::MemberStarter<WaitGroup>;
  template <class F, class... Args>
  static constexpr bool fits() {
    return rt::fits_without_result<F, Args...>();
  }
  template <class F, class... Args>
  void start(const GoOptions& options, const std::source_location& where, F&& function, Args&&... args) {
    add(1);
    rt::UnlessStarted<WaitGroup, &WaitGroup::done> unless_started(*this);
    tuza::go(options, as_member(std::forward<F>(function), std::forward<Args>(args)...), where);
    unless_started.started();
  }
  template <class F, class... Args>
  auto as_member(F&& function, Args&&... args) {
    return [this, call = rt::BoundCallOf<F, Args...>(std::in_place, std::forward<F>(function),
                                                     std::forward<Args>(args)...)]() mutable {
      const rt::MemberEnd<WaitGroup, &WaitGroup::done> member(*this);
      auto mine(std::move(call));
      std::move(mine)();
    };
  }

  bool wait_until(const rt::Until& until);
  bool enqueue(rt::Waiter& place);
  enum class GaveUp { kYes, kTooLate, kReleaseIsComing };
  GaveUp give_up(rt::Waiter& place, rt::Waiter& again);
  void leave(rt::Waiter& place);
  void release_waiters();

  //   63          32 31            0
  //  |   counter    |   waiters    |
  //
  // One word, so that the single write of done() tells whether it is the last and whether anybody waits. The
  // number of waiters changes under lock_ only.
  std::atomic<std::uint64_t> state_{0};
  rt::SpinLock lock_;
  rt::WaitQueue queue_ TUZA_GUARDED_BY(lock_);
};

}  // namespace tuza
