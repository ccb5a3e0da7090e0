// Public header, part of <tuza/sync.h>.
//
// ErrorGroup: goroutines that work on one thing, of which the first that fails stops the others.
//
//     tuza::ErrorGroup group(request);
//     group.set_limit(8);                                    // eight at a time
//     for (const Url& url : urls) {
//       group.go([&, ctx = group.context()] { return fetch(ctx, url); });      // Result<void>, or void
//     }
//     return group.wait();                                   // the first error
//
// The first goroutine that returns an error ends the group's context with it, and wait() returns it. One that
// throws does so too: the context ends with Errc::kCancelled, and wait() throws what was thrown. What fails
// later is dropped. goexit() is no failure. When wait() returns the context has ended in any case.
//
// Ordering: what the goroutines did is visible after wait(); when it returns they have ended, and what their
// functions had captured is destroyed.
// Lifetime: the destructor ends the context and waits for those that still run; what they return or throw
// then is lost. It parks if there are any. Those that the end of tuza::run has left behind are not waited for.
//
// Thread-safe: goroutines of the group may start others in it, if the owner has not yet come back from
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

  // At most `n` at a time from now on; 0: none at all; less: no limit, as at first. Aborts while goroutines
  // of the group run.
  void set_limit(std::int64_t n);

  // Runs `function`, which returns void or Result<void>, in a goroutine of its own. Parks while the limit is
  // reached, whatever becomes of the context.
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    if (limit_) limit_->acquire();
    start(std::forward<F>(function), where);
  }
  // The same if the limit is not reached; else false, and `function` is as it was. Does not park.
  template <class F>
  [[nodiscard]] bool try_go(F&& function,
                            const std::source_location& where = std::source_location::current()) {
    if (limit_ && !limit_->try_acquire()) return false;
    start(std::forward<F>(function), where);
    return true;
  }

  // Waits until all have ended; the first error. Throws the first exception, if that came first. Parks.
  Result<void> wait();
  // The same; ctx.cause() if `ctx` ended before, and then the goroutines go on.
  Result<void> wait(const Context& ctx);

 private:
  // One goroutine of the group: says that it has ended.
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
          std::decay_t<F> mine(std::move(captured));  // gone before the group hears of the end
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
  std::optional<Semaphore> limit_;  // changed while nobody runs
  WaitGroup running_;
  rt::RunMark run_;  // in which goroutines were started last
  std::atomic<std::int64_t> members_{0};
  std::atomic<bool> failed_{false};  // who makes it true writes one of these; read when nobody runs
  std::optional<Error> error_;
  std::exception_ptr thrown_;
};

}  // namespace tuza
