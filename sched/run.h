// Public header, part of <tuza/tuza.h>.
//
// tuza::run: starts the runtime, runs a main function on it, and ends it.
//
//     int main() {
//       return tuza::run([] {
//         tuza::go([] { std::puts("hello"); });
//         tuza::sleep_for(1s);
//       });
//     }
//
// run() starts the scheduler, runs the function as the first goroutine, and returns when the function
// returns. The calling thread runs no goroutine. It only waits, so that no goroutine can keep run() from
// returning. The first goroutine is therefore on another thread, with other thread-locals than main() has.
//
// Goroutines that still exist at that time are left behind, as in Go, and never run again. Their waits are
// withdrawn: channels, locks, contexts and listeners that outlive the run have no waiters left, and may be
// used or destroyed outside the runtime and in the next run. The goroutines' stacks are unmapped, and
// objects on those stacks are not destroyed. Whatever such a goroutine held stays held for ever, and
// whatever it owned stays allocated (LeakSanitizer does not report it).
//
// Goroutines that are in user code at that time, computing or in a system call, have 200 ms to reach a
// parking call. A goroutine that does not reach one is left alone: its thread continues, and sleeps for ever
// at its next call into the runtime. In that case no stack of this run is unmapped.
//
// All threads are joined: destructors of thread_locals have run when run() returns, unless they take longer
// than a second. Then the signal handlers and the terminate handler of the process are restored.
//
// exit(), on a goroutine or another thread, ends the runtime before the destructors of statics run; run()
// does not return then. A process may run any number of runtimes one after another, never two at once.
// Starting and ending a runtime takes about a millisecond. docs/internals/lifecycle.md describes every step.
#pragma once

#include <tuza/sched/detail/language.h>  // first
#include <tuza/sched/detail/move_only_function.h>

#include <tuza/sched/result.h>

#include <concepts>
#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

struct RunOptions {
  int max_procs = 0;  // 0: TUZA_MAXPROCS, else the CPUs allowed by affinity and cgroup quota; at most 256
  std::size_t stack_bytes = std::size_t{8} << 20;  // of the first goroutine, at most 64 MiB
};

namespace rt {

using MainFunction = MoveOnlyFunction<int()>;
int run_main(const RunOptions& options, MainFunction main, const std::source_location& where);

// Prints "tuza: <message>" and returns 1, the exit status of a program that failed.
int report_error(const Error& error);

}  // namespace rt

// Returns the result of `main`: an int as it is, 0 for void and for a Result<void> without an error. An
// error is printed on one line and becomes 1. If `main` ends by goexit(), run() continues until exit() or a
// deadlock.
//
// Blocks the calling thread until the runtime has ended. Ends the process, with a message, if it is called
// on a goroutine, inside another run(), or in the child of a fork from inside run(); if there is no memory
// for the runtime or its first threads; and if an exception escapes `main`.
template <class F>
  requires std::invocable<F&>
int run(const RunOptions& options, F&& main,
        const std::source_location& where = std::source_location::current()) {
  return rt::run_main(
      options,
      [&main]() -> int {
        using R = std::invoke_result_t<F&>;
        static_assert(std::is_void_v<R> || std::same_as<R, Result<void>> || std::convertible_to<R, int>,
                      "the function of tuza::run() returns void, int or tuza::Result<void>; a lambda with "
                      "TUZA_TRY has to say so: []() -> tuza::Result<void> { ... }");
        if constexpr (std::is_void_v<R>) {
          main();
          return 0;
        } else if constexpr (std::same_as<R, Result<void>>) {
          const R result = main();
          return result ? 0 : rt::report_error(result.error());
        } else if constexpr (std::convertible_to<R, int>) {
          return main();
        }
      },
      where);
}

template <class F>
  requires std::invocable<F&>
int run(F&& main, const std::source_location& where = std::source_location::current()) {
  return run(RunOptions{}, std::forward<F>(main), where);
}

}  // namespace tuza
