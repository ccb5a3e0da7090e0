// Public header, part of <tuza/tuza.h>.
//
// tuza::run: the runtime, from beginning to end.
//
//     int main() {
//       return tuza::run([] {
//         tuza::go([] { std::puts("hello"); });
//         tuza::sleep_for(1s);
//       });
//     }
//
// run() starts the scheduler, runs the function as the first goroutine, and returns when that returns. The
// calling thread runs no goroutine: it only waits, so that nothing a goroutine does can keep run() from
// returning. The first goroutine is therefore on another thread, with other thread-locals than main() has.
//
// Goroutines that are still there are left behind, as in Go, and never run again. Their waits are withdrawn, so that
// channels, locks, contexts and listeners that live on find nobody waiting; they may be used, or destroyed, outside and
// in the next run. Their stacks are unmapped, and objects on them are not destroyed: what such a goroutine held it holds
// for ever, and what it owns stays allocated (LeakSanitizer does not report it).
//
// Those that are in user code just then, computing or in a system call, have 200 ms to come to a parking call. One that
// does not is left to itself: its thread goes on, sleeps for ever at its next call into the runtime, and no stack of this
// run is unmapped.
//
// All threads are joined: destructors of thread_locals have run when run() returns, if they take no longer than a second.
// Then the process's signal handlers and its terminate handler are what they were.
//
// exit(), on a goroutine or another thread, ends the runtime before destructors of statics run; run() does not return
// then. A process may run any number of runtimes one after another, never two at once; one takes about a millisecond to
// start and end. docs/internals/lifecycle.md has every step.
#pragma once

#include <tuza/sched/result.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

struct RunOptions {
  int max_procs = 0;  // 0: TUZA_MAXPROCS, else the CPUs allowed by affinity and cgroup quota; at most 256
  std::size_t stack_bytes = std::size_t{8} << 20;  // of the first goroutine
};

namespace rt {

using MainFunction = std::move_only_function<int()>;
int run_main(const RunOptions& options, MainFunction main, const std::source_location& where);

// Prints "tuza: <message>" and returns 1, the exit status of a program that could not do its work.
int report_error(const Error& error);

}  // namespace rt

// Returns what `main` returned: an int as it is, 0 for void and for a Result<void> that holds no error. An
// error is printed on one line and becomes 1. If `main` ends by goexit(), run() goes on until exit() or a deadlock.
//
// Blocks the calling thread until the runtime has ended. Ends the process, with a message: on a goroutine, inside
// another run(), in the child of a fork from inside run(), without memory for the runtime or its first threads; and if an
// exception leaves `main`.
template <class F>
  requires std::invocable<F&>
int run(const RunOptions& options, F&& main,
        const std::source_location& where = std::source_location::current()) {
  return rt::run_main(
      options,
      [&main]() -> int {
        using R = std::invoke_result_t<F&>;
        if constexpr (std::is_void_v<R>) {
          main();
          return 0;
        } else if constexpr (std::same_as<R, Result<void>>) {
          const R result = main();
          return result ? 0 : rt::report_error(result.error());
        } else {
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
