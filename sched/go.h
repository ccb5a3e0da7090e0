// Public header, part of <tuza/tuza.h>.
//
// go(): starts a goroutine.
//
//     tuza::go([conn = std::move(conn)]() mutable { serve(conn); });
//     tuza::go(serve_for, 30s, std::ref(stats));                              // serve_for(30s, stats)
//     tuza::go({.name = "compactor", .stack_bytes = 1 << 20}, [] { compact_for_ever(); });
//
// The function object is moved into the goroutine (into its record, or onto its stack if the object is
// large) and destroyed after it has returned. What it returns is dropped; a Result is refused, since its error would be
// lost. The arguments are moved there, too: as with std::thread, the goroutine has
// copies of its own, moves them into the call, and gets a reference only by std::ref(). Nothing is allocated
// once the process has warmed up. The goroutine starts soon, on some thread, but never inside go() itself. An exception that escapes the
// function ends the process, as a panic does in Go.
//
// Thread-safe; any thread may call it while tuza::run is active. Does not park. Everything done before go()
// is visible to the goroutine.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/detail/spawn.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tuza {

inline constexpr std::size_t kStackBytesMax = std::size_t{64} << 20;

struct GoOptions {
  std::string_view name = {};  // shown in dumps; the first 27 bytes are kept
  // 0: 256 KiB; rounded up to 64 KiB, 256 KiB, 1 MiB, 8 MiB or 64 MiB, guard included. More is refused: go() aborts,
  // try_go() returns EINVAL.
  std::size_t stack_bytes = 0;
  // What the report of an overflow advises to increase, if the size is a setting of somebody else: a literal.
  const char* stack_setting = "GoOptions::stack_bytes";
};

// Starts a goroutine that calls `function`, with copies of `args` if there are any. If the system has no
// memory for its stack, the process aborts, now or when the goroutine first runs; try_go() reports the error
// instead. `where` is the place that dumps show; an argument cannot be a std::source_location.
template <class F>
void go(const GoOptions& options, F&& function,
        const std::source_location& where = std::source_location::current()) {
  const rt::Spawned spawned = rt::spawn(options, std::forward<F>(function), false, where);
  if (spawned != rt::Spawned::kYes) rt::spawn_failed(spawned);
}
template <class... Args>
  requires rt::GoroutineArguments<Args...>
void go(const GoOptions& options,
        const std::type_identity_t<rt::FunctionOf<const rt::GoStarter, Args...>>& function, Args&&... args) {
  const rt::GoStarter starter{options, false};
  const rt::Spawned spawned = function.start(starter, std::forward<Args>(args)...);
  if (spawned != rt::Spawned::kYes) rt::spawn_failed(spawned);
}

template <class F>
void go(F&& function, const std::source_location& where = std::source_location::current()) {
  go(GoOptions{}, std::forward<F>(function), where);
}
template <class... Args>
  requires rt::GoroutineArguments<Args...>
void go(const std::type_identity_t<rt::FunctionOf<const rt::GoStarter, Args...>>& function, Args&&... args) {
  go(GoOptions{}, function, std::forward<Args>(args)...);
}

namespace rt {
[[nodiscard]] inline Result<void> result_of(Spawned spawned) {
  switch (spawned) {
    case Spawned::kYes: return {};
    case Spawned::kNotRunning: return std::unexpected(Error(Errc::kNotRunning, "go"));
    case Spawned::kTooLarge:
      return std::unexpected(Error::from_errno(EINVAL, "go", "with a stack above 64 MiB"));
    case Spawned::kNoMemory: break;
  }
  return std::unexpected(Error::from_errno(ENOMEM, "go"));
}
}  // namespace rt

// Like go(), but reports errors: ENOMEM if there is no memory for the stack, EINVAL if it is larger than there are
// any, Errc::kNotRunning outside tuza::run. After an error `function` and `args` have not been moved from. Where the address
// space is limited (ulimit -v), the last eighth of it is left to malloc and to go().
template <class F>
[[nodiscard]] Result<void> try_go(const GoOptions& options, F&& function,
                                  const std::source_location& where = std::source_location::current()) {
  return rt::result_of(rt::spawn(options, std::forward<F>(function), true, where));
}
template <class... Args>
  requires rt::GoroutineArguments<Args...>
[[nodiscard]] Result<void> try_go(
    const GoOptions& options,
    const std::type_identity_t<rt::FunctionOf<const rt::GoStarter, Args...>>& function, Args&&... args) {
  const rt::GoStarter starter{options, true};
  return rt::result_of(function.start(starter, std::forward<Args>(args)...));
}

}  // namespace tuza
