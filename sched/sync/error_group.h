// Public header, part of <tuza/sync.h>.
//
// ErrorGroup: goroutines that work on one task; the first failure stops the others.
//
//     tuza::ErrorGroup group(parent);
//     group.set_limit(8);                                    // eight at a time
//     for (const Url& url : urls) {
//       group.go([&, ctx = group.context()] { return fetch(ctx, url); });      // Result<void>, or void
//     }
//     return group.wait();                                   // the first error
//
// The first goroutine that returns an error ends the group's context with this error, and wait() returns the
// error. An exception counts as a failure too: the context ends with Errc::kCancelled, and wait() rethrows
// the exception. Later failures are dropped. goexit() is not a failure. When wait() returns, the context has
// always ended.
//
// Ordering: everything that the goroutines did is visible after wait(). When wait() returns, the goroutines
// have ended, and the captures of their functions and their goroutine-locals are destroyed.
// Lifetime: the destructor ends the context and waits for the goroutines that still run; their later errors
// and exceptions are lost. The destructor parks if there are any. It does not wait for goroutines that the
// end of tuza::run has left behind. A failure that nobody has waited for is logged, once a second at most, unless an
// exception passes.
//
// Thread-safe: goroutines of the group may start others in it, as long as the owner has not returned from
// wait(). Source: golang.org/x/sync/errgroup.
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/member.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

class ErrorGroup {
 public:
  explicit ErrorGroup(const Context& parent = Context::background())
      : made_(with_cancel(parent)), exceptions_(std::uncaught_exceptions()) {}
  ErrorGroup(const ErrorGroup&) = delete;
  ErrorGroup& operator=(const ErrorGroup&) = delete;
  ~ErrorGroup();

  // Ends with `parent`, with the first failure, and when wait() returns.
  [[nodiscard]] const Context& context() const { return made_.ctx(); }
  void cancel() { made_.cancel(); }

  // From now on at most `n` goroutines run at a time; 0: none at all; negative: no limit, which is the
  // default. Aborts while goroutines of the group run.
  void set_limit(std::int64_t n);

  // Runs `function`, which returns void or Result<void>, in a goroutine of its own, with copies of `args` if there
  // are any; `options` as for tuza::go(). Parks while the limit is reached, even if the context ends.
  template <class F>
  void go(const GoOptions& options, F&& function,
          const std::source_location& where = std::source_location::current()) {
    if constexpr (fits<F>()) {
      if (limit_) limit_->acquire();
      start(options, where, std::forward<F>(function));
    }
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  void go(const GoOptions& options,
          const std::type_identity_t<rt::MemberFunction<ErrorGroup, Args...>>& function, Args&&... args) {
    if (limit_) limit_->acquire();
    function.start(rt::MemberStarter<ErrorGroup>{*this, options}, std::forward<Args>(args)...);
  }
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    go(GoOptions{}, std::forward<F>(function), where);
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  void go(const std::type_identity_t<rt::MemberFunction<ErrorGroup, Args...>>& function, Args&&... args) {
    go(GoOptions{}, function, std::forward<Args>(args)...);
  }
  // The same if the limit is not reached; otherwise returns false, and `function` and `args` are untouched. Does
  // not park.
  template <class F>
  [[nodiscard]] bool try_go(const GoOptions& options, F&& function,
                            const std::source_location& where = std::source_location::current()) {
    if constexpr (fits<F>()) {
      if (limit_ && !limit_->try_acquire()) return false;
      start(options, where, std::forward<F>(function));
    }
    return true;
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  [[nodiscard]] bool try_go(const GoOptions& options,
                            const std::type_identity_t<rt::MemberFunction<ErrorGroup, Args...>>& function,
                            Args&&... args) {
    if (limit_ && !limit_->try_acquire()) return false;
    function.start(rt::MemberStarter<ErrorGroup>{*this, options}, std::forward<Args>(args)...);
    return true;
  }
  template <class F>
  [[nodiscard]] bool try_go(F&& function,
                            const std::source_location& where = std::source_location::current()) {
    return try_go(GoOptions{}, std::forward<F>(function), where);
  }
  template <class... Args>
    requires rt::GoroutineArguments<Args...>
  [[nodiscard]] bool try_go(const std::type_identity_t<rt::MemberFunction<ErrorGroup, Args...>>& function,
                            Args&&... args) {
    return try_go(GoOptions{}, function, std::forward<Args>(args)...);
  }

  // Waits until all goroutines have ended and returns the first error. Rethrows the first exception if that
  // was the first failure. Parks.
  [[nodiscard]] Result<void> wait();
  // The same, but returns ctx.cause() if `ctx` ends first; the goroutines continue then.
  [[nodiscard]] Result<void> wait(const Context& ctx);

 private:
  friend struct rt::MemberStarter<ErrorGroup>;
  template <class F, class... Args>
  static constexpr bool fits() {
    if constexpr (rt::fits_goroutine<F, Args...>()) {
      using R = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
      constexpr bool kFits = std::is_void_v<R> || std::is_convertible_v<R, Result<void>>;
      static_assert(kFits, "ErrorGroup::go() needs a function that returns void or tuza::Result<void>");
      return kFits;
    } else {
      return false;
    }
  }
  template <class F, class... Args>
  void start(const GoOptions& options, const std::source_location& where, F&& function, Args&&... args) {
    begun();
    rt::UnlessStarted<ErrorGroup, &ErrorGroup::ended> unless_started(*this);
    tuza::go(
        options,
        [this, call = rt::BoundCallOf<F, Args...>(std::in_place, std::forward<F>(function),
                                                  std::forward<Args>(args)...)]() mutable {
          const rt::MemberEnd<ErrorGroup, &ErrorGroup::ended> member(*this);
          auto mine(std::move(call));  // destroyed before the group learns of the end
          run(mine);
        },
        where);
    unless_started.started();
  }
  template <class Call>
  void run(Call& call) {
    std::exception_ptr thrown = rt::catch_exception([&] {
      if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
        std::move(call)();
      } else if (Result<void> result = std::move(call)(); !result) {
        fail(std::move(result.error()));
      }
    });
    if (thrown != nullptr) fail(std::move(thrown));
  }
  void begun();
  void ended();
  void fail(Error error);
  void fail(std::exception_ptr thrown);
  [[nodiscard]] Result<void> outcome();
  void log_failure() const;

  CancellableContext made_;
  const int exceptions_;            // in flight when this began
  std::optional<Semaphore> limit_;  // changed only while no goroutine of the group runs
  WaitGroup running_;
  rt::RunMark run_;  // the run in which goroutines were last started
  std::atomic<std::int64_t> members_{0};
  std::atomic<bool> known_{
      false};  // somebody has waited; relaxed: waits have returned when the group is destroyed
  std::atomic<bool> failed_{false};  // its setter writes the next three; read when no goroutine runs
  std::optional<Error> error_;
  std::exception_ptr thrown_;
  bool is_cause_ = false;  // of the context's end
};

}  // namespace tuza
