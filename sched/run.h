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
// Goroutines that are still there are abandoned, as in Go: parked ones never run again and their stacks are
// unmapped without running destructors; what they own stays allocated. Those that are in user code just then
// have 200 ms to come to a parking call; if one does not, its thread goes on and all stacks are left alone,
// and at its next call into the runtime it sleeps for ever.
//
// A process may run several runtimes one after another, never two at once.
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
  int max_procs = 0;  // 0: TUZA_MAXPROCS, else the CPUs allowed by affinity and cgroup quota
  std::size_t stack_bytes = std::size_t{8} << 20;  // of the first goroutine
};

namespace rt {

using MainFunction = std::move_only_function<int()>;
int run_main(const RunOptions& options, MainFunction main, const std::source_location& where);

// Prints "tuza: <message>" and returns 1, the exit status of a program that could not do its work.
int report_error(const Error& error);

}  // namespace rt

// Returns what `main` returned: an int as it is, 0 for void and for a Result<void> that holds no error. An
// error is printed on one line and becomes 1. Blocks the calling thread until then.
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
