// Public header, part of <tuza/sync.h>.
//
// ErrorGroup: goroutines that work on one task; the first failure stops the others.
//
//     tuza::ErrorGroup group(request);
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
// have ended, and the captures of their functions are destroyed.
// Lifetime: the destructor ends the context and waits for the goroutines that still run; their later errors
// and exceptions are lost. The destructor parks if there are any. It does not wait for goroutines that the
// end of tuza::run has left behind.
//
// Thread-safe: goroutines of the group may start others in it, as long as the owner has not returned from
// wait(). Source: golang.org/x/sync/errgroup.
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

class ErrorGroup {
 public:
  explicit ErrorGroup(const Context& parent = Context::background()) : made_(with_cancel(parent)) {}
  ErrorGroup(const ErrorGroup&) = delete;
  ErrorGroup& operator=(const ErrorGroup&) = delete;
  ~ErrorGroup();

  // Ends with `parent`, with the first failure, and when wait() returns.
  [[nodiscard]] const Context& context() const { return made_.ctx; }
  void cancel() { made_.cancel(); }

  // From now on at most `n` goroutines run at a time; 0: none at all; negative: no limit, which is the
  // default. Aborts while goroutines of the group run.
  void set_limit(std::int64_t n);

  // Runs `function`, which returns void or Result<void>, in a goroutine of its own. Parks while the limit is
  // reached, even if the context ends.
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    if (limit_) limit_->acquire();
    start(std::forward<F>(function), where);
  }
  // The same if the limit is not reached; otherwise returns false, and `function` is untouched. Does not
  // park.
  template <class F>
  [[nodiscard]] bool try_go(F&& function,
                            const std::source_location& where = std::source_location::current()) {
    if (limit_ && !limit_->try_acquire()) return false;
    start(std::forward<F>(function), where);
    return true;
  }

  // Waits until all goroutines have ended and returns the first error. Rethrows the first exception if that
  // was the first failure. Parks.
  Result<void> wait();
  // The same, but returns ctx.cause() if `ctx` ends first; the goroutines continue then.
  Result<void> wait(const Context& ctx);

 private:
  // One goroutine of the group; the destructor reports its end.
  struct Member {
    ErrorGroup* group;
    ~Member() {
      if (group != nullptr) group->ended();
    }
  };

  template <class F>
  void start(F&& function, const std::source_location& where) {
    begun();
    Member unless_started{this};
    tuza::go(
        [this, captured = std::forward<F>(function)]() mutable {
          const Member member{this};
          std::decay_t<F> mine(std::move(captured));  // destroyed before the group learns of the end
          run(mine);
        },
        where);
    unless_started.group = nullptr;
  }
  template <class F>
  void run(F& function) {
    std::exception_ptr thrown = rt::catch_exception([&] {
      if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
        std::invoke(std::move(function));
      } else if (Result<void> result = std::invoke(std::move(function)); !result) {
        fail(std::move(result.error()));
      }
    });
    if (thrown != nullptr) fail(std::move(thrown));
  }
  void begun();
  void ended();
  void fail(Error error);
  void fail(std::exception_ptr thrown);
  Result<void> outcome();

  CancellableContext made_;
  std::optional<Semaphore> limit_;  // changed only while no goroutine of the group runs
  WaitGroup running_;
  rt::RunMark run_;  // the run in which goroutines were last started
  std::atomic<std::int64_t> members_{0};
  std::atomic<bool> failed_{false};  // its setter writes one of the next two; read when no goroutine runs
  std::optional<Error> error_;
  std::exception_ptr thrown_;
};

}  // namespace tuza
