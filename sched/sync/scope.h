// Public header, part of <tuza/sync.h>.
//
// Scope: goroutines that end before the block that started them does.
//
//     {
//       tuza::Scope scope(request);
//       scope.go([&] { left = sum(first_half); });      // may refer to what is on this stack
//       scope.go([&] { right = sum(second_half); });
//     }                                                 // both have ended; an exception of theirs comes out
//     here total = left + right;
//
// The end of the block waits for all goroutines of the scope. If the block is left by an exception or
// goexit(), the scope's context is ended first, so that those end soon who look at it; that exception goes
// on, and theirs are dropped.
//
// The first goroutine that throws ends the scope's context (Errc::kCancelled), so that the others need not go
// on in vain. Its exception comes out of join(), or of the destructor if nobody has called that. Of several
// exceptions the first counts, the others are dropped; an ErrorGroup is the same for errors that are values.
// goexit() of a goroutine is no failure.
//
// Ordering: what the goroutines did is visible behind the scope, and what their functions had captured is
// destroyed.
//
// Goroutines that the end of tuza::run has left behind are not waited for by the destructor.
//
// Thread-safe: go() may be called by goroutines of the scope. The destructor and join() park the goroutine,
// or block the thread; go() does not park.
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <exception>
#include <functional>
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
  [[nodiscard]] const Context& context() const { return made_.ctx; }
  void cancel() { made_.cancel(); }

  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    run_.set();
    running_.add(1);
    Member unless_started{this};
    tuza::go(
        [this, captured = std::forward<F>(function)]() mutable {
          const Member member{this};
          std::decay_t<F> mine(std::move(captured));  // gone before the owner goes on
          if (auto thrown = rt::catch_exception([&] { std::invoke(std::move(mine)); }); thrown != nullptr) {
            fail(std::move(thrown));
          }
        },
        where);
    unless_started.scope = nullptr;
  }

  // Waits for all that were started, and throws the first exception, once. Others may be started then.
  void join();

 private:
  struct Member {
    Scope* scope;
    ~Member() {
      if (scope != nullptr) scope->running_.done();
    }
  };
  void fail(std::exception_ptr thrown);

  CancellableContext made_;
  const int exceptions_at_begin_ = std::uncaught_exceptions();
  const bool in_goexit_at_begin_ = rt::in_goexit();
  WaitGroup running_;
  rt::RunMark run_;                  // in which goroutines were started last
  std::atomic<bool> failed_{false};  // who makes it true writes thrown_, which is read when nobody runs
  std::exception_ptr thrown_;
};

}  // namespace tuza
