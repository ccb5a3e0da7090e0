// Public header, part of <tuza/tuza.h>.
//
// go(): starts a goroutine.
//
//     tuza::go([conn = std::move(conn)]() mutable { serve(conn); });
//     tuza::go({.name = "compactor", .stack_bytes = 1 << 20}, [] { compact_for_ever(); });
//
// The function object is moved into the goroutine (into its record, or onto its stack if the object is
// large) and destroyed after it has returned. Nothing is allocated once the process has warmed up. The
// goroutine starts soon, on some thread, but never inside go() itself. An exception that escapes the
// function ends the process, as a panic does in Go.
//
// Thread-safe; any thread may call it while tuza::run is active. Does not park. Everything done before go()
// is visible to the goroutine.
#pragma once

#include <tuza/sched/result.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tuza {

struct GoOptions {
  std::string_view name = {};   // shown in dumps; the first 27 bytes are kept
  std::size_t stack_bytes = 0;  // 0: 256 KiB; rounded up to 64 KiB, 256 KiB, 1 MiB or 8 MiB, guard included
};

namespace rt {

struct G;

// A goroutine under construction: a G, and room for the function object.
struct Spawn {
  G* g;
  void* storage;             // null: the system has no memory
  bool external = false;     // begun by a thread that is not an M: the runtime does not end before the commit
  bool not_running = false;  // storage is null because there is no runtime
};

struct SpawnRequest {
  const GoOptions& options;
  std::size_t closure_bytes;
  std::size_t closure_alignment;
  bool stack_now;  // allocate the stack at once, so that a lack of memory can be reported
  const std::source_location& where;
};

Spawn spawn_begin(const SpawnRequest& request);
void spawn_commit(Spawn spawn, void (*entry)(void* closure));
void spawn_abandon(Spawn spawn);
[[noreturn]] void spawn_failed();

template <class F>
void run_closure(void* storage) {
  F& function = *std::launder(static_cast<F*>(storage));
  struct Destroy {
    F& function;
    ~Destroy() { function.~F(); }
  } destroy{function};
  std::invoke(std::move(function));
}

enum class Spawned { kYes, kNoMemory, kNotRunning };

template <class F>
Spawned spawn(const GoOptions& options, F&& function, bool stack_now, const std::source_location& where) {
  using Closure = std::decay_t<F>;
  static_assert(std::invocable<Closure>, "a goroutine's function takes no arguments");
  const Spawn spawn = spawn_begin(SpawnRequest{options, sizeof(Closure), alignof(Closure), stack_now, where});
  if (spawn.storage == nullptr) return spawn.not_running ? Spawned::kNotRunning : Spawned::kNoMemory;
  struct Guard {
    const Spawn* spawn;
    ~Guard() {
      if (spawn != nullptr) spawn_abandon(*spawn);
    }
  } guard{&spawn};
  ::new (spawn.storage) Closure(std::forward<F>(function));
  guard.spawn = nullptr;
  spawn_commit(spawn, &run_closure<Closure>);
  return Spawned::kYes;
}

}  // namespace rt

// Starts a goroutine. If the system has no memory for its stack, the process aborts, now or when the
// goroutine first runs; try_go() reports the error instead.
template <class F>
void go(const GoOptions& options, F&& function,
        const std::source_location& where = std::source_location::current()) {
  if (rt::spawn(options, std::forward<F>(function), false, where) != rt::Spawned::kYes) rt::spawn_failed();
}

template <class F>
  requires std::invocable<std::decay_t<F>>
void go(F&& function, const std::source_location& where = std::source_location::current()) {
  go(GoOptions{}, std::forward<F>(function), where);
}

// Like go(), but reports errors: ENOMEM if there is no memory for the stack, Errc::kNotRunning outside
// tuza::run. After an error `function` has not been moved from.
template <class F>
[[nodiscard]] Result<void> try_go(const GoOptions& options, F&& function,
                                  const std::source_location& where = std::source_location::current()) {
  switch (rt::spawn(options, std::forward<F>(function), true, where)) {
    case rt::Spawned::kYes: return {};
    case rt::Spawned::kNotRunning: return std::unexpected(Error(Errc::kNotRunning, "go"));
    case rt::Spawned::kNoMemory: break;
  }
  return std::unexpected(Error::from_errno(ENOMEM, "go"));
}

}  // namespace tuza
