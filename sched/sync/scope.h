// Public header, part of <tuza/sync.h>.
//
// Scope: goroutines that end before the block that started them ends.
//
//     {
//       tuza::Scope scope(parent);
//       scope.go([&] { left = sum(first_half); });      // may refer to what is on this stack
//       scope.go([&] { right = sum(second_half); });
//     }                                                 // both have ended; an exception of theirs comes out
//     here total = left + right;
//
// The end of the block waits for all goroutines of the scope. If an exception or goexit() leaves the block,
// the scope's context ends first, so that goroutines that check it end soon. The block's exception
// propagates; exceptions of the goroutines are dropped.
//
// The first goroutine that throws ends the scope's context (Errc::kCancelled), so that the others need not
// continue for nothing. join() rethrows the goroutine's exception, or the destructor does if join() was not
// called. If several goroutines throw, the first exception counts, and the others are dropped. An ErrorGroup
// does the same for errors that are values. goexit() in a goroutine is not a failure.
//
// Ordering: everything that the goroutines did is visible after the scope, and the captures of their
// functions and their goroutine-locals are destroyed.
//
// The destructor does not wait for goroutines that the end of tuza::run has left behind.
//
// Thread-safe: goroutines of the scope may call go(). The destructor and join() park the goroutine, or block
// the thread; go() does not park.
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/member.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <exception>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

class Scope {
 public:
  explicit Scope(const Context& parent = Context::background()) : made_(with_cancel(parent)) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() noexcept(false);

  // Ends with `parent`, with cancel(), with the first exception, and with the scope.
  [[nodiscard]] const Context& context() const { return made_.ctx(); }
  void cancel() { made_.cancel(); }

  // As tuza::go() does, with copies of `args` if there are any; `options` may give a name and a size of the stack.
  template <class F>
  void go(const GoOptions& options, F&& function,
          const std::source_location& where = std::source_location::current()) {
    if constexpr (fits<F>()) start(options, where, std::forward<F>(function));
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  void go(const GoOptions& options, const std::type_identity_t<rt::MemberFunction<Scope, Args...>>& function,
          Args&&... args) {
    function.start(rt::MemberStarter<Scope>{*this, options}, std::forward<Args>(args)...);
  }
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    go(GoOptions{}, std::forward<F>(function), where);
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  void go(const std::type_identity_t<rt::MemberFunction<Scope, Args...>>& function, Args&&... args) {
    go(GoOptions{}, function, std::forward<Args>(args)...);
  }

  // Waits for all goroutines started so far, and throws the first exception, once. More may be started
  // afterwards.
  void join();

 private:
  friend struct rt::MemberStarter<Scope>;
  template <class F, class... Args>
  static constexpr bool fits() {
    return rt::fits_without_result<F, Args...>();
  }
  template <class F, class... Args>
  void start(const GoOptions& options, const std::source_location& where, F&& function, Args&&... args) {
    run_.set();
    running_.add(1);
    rt::UnlessStarted<WaitGroup, &WaitGroup::done> unless_started(running_);
    tuza::go(
        options,
        [this, call = rt::BoundCallOf<F, Args...>(std::in_place, std::forward<F>(function),
                                                  std::forward<Args>(args)...)]() mutable {
          const rt::MemberEnd<WaitGroup, &WaitGroup::done> member(running_);
          auto mine(std::move(call));  // destroyed before the owner continues
          if (auto thrown = rt::catch_exception([&] { std::move(mine)(); }); thrown != nullptr) {
            fail(std::move(thrown));
          }
        },
        where);
    unless_started.started();
  }

  void fail(std::exception_ptr thrown);

  CancellableContext made_;
  const int exceptions_at_begin_ = std::uncaught_exceptions();
  const bool in_goexit_at_begin_ = rt::in_goexit();
  WaitGroup running_;
  rt::RunMark run_;                  // the run in which goroutines were last started
  std::atomic<bool> failed_{false};  // its setter writes thrown_, read when no goroutine runs
  std::exception_ptr thrown_;
};

}  // namespace tuza
