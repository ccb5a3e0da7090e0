// Puts a function object, and the arguments of its call, into a new goroutine: the part of go(), async() and the go() of
// groups that is a template.
#pragma once

#include <tuza/sched/detail/lost_result.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tuza {

struct GoOptions;

namespace rt {

struct G;

// kTooLarge: GoOptions::stack_bytes is above what there is.
enum class Spawned { kYes, kNoMemory, kNotRunning, kTooLarge };

// A goroutine under construction: a G, and room for the function object.
struct Spawn {
  G* g;
  void* storage;          // null: `refused` says why
  bool external = false;  // begun by a thread that is not an M: the runtime does not end before the commit
  Spawned refused = Spawned::kNoMemory;
};

struct SpawnRequest {
  const GoOptions& options;
  std::size_t closure_bytes;
  std::size_t closure_alignment;
  // The caller handles a lack of memory: the stack is allocated at once, and leaves the last ones to others.
  bool may_fail;
  const std::source_location& where;
};

Spawn spawn_begin(const SpawnRequest& request);
void spawn_commit(Spawn spawn, void (*entry)(void* closure));
void spawn_abandon(Spawn spawn);
[[noreturn]] void spawn_failed(Spawned why);

template <class F>
void run_closure(void* storage) {
  F& function = *std::launder(static_cast<F*>(storage));
  struct Destroy {
    F& function;
    ~Destroy() { function.~F(); }
  } destroy{function};
  std::invoke(std::move(function));
}

// A function object with the arguments of its call.
template <class F, class... Args>
struct BoundCall {
  template <class G, class... Given>
  explicit BoundCall(std::in_place_t, G&& f, Given&&... args)
      : function(std::forward<G>(f)), arguments(std::forward<Given>(args)...) {}
  decltype(auto) operator()() && {
    if constexpr (sizeof...(Args) == 0) {
      return std::invoke(std::move(function));
    } else {
      return std::apply(std::move(function), std::move(arguments));
    }
  }

  F function;
  [[no_unique_address]] std::tuple<Args...> arguments;
};
template <class F, class... Args>
using BoundCallOf = BoundCall<std::decay_t<F>, std::decay_t<Args>...>;

// Starts a goroutine that calls a Closure made of `parts`. If there is none, `parts` are untouched.
template <class Closure, class... Parts>
Spawned spawn_closure(const GoOptions& options, bool may_fail, const std::source_location& where,
                      Parts&&... parts) {
  const Spawn spawn = spawn_begin(SpawnRequest{options, sizeof(Closure), alignof(Closure), may_fail, where});
  if (spawn.storage == nullptr) return spawn.refused;
  struct Guard {
    const Spawn* spawn;
    ~Guard() {
      if (spawn != nullptr) spawn_abandon(*spawn);
    }
  } guard{&spawn};
  ::new (spawn.storage) Closure(std::forward<Parts>(parts)...);
  guard.spawn = nullptr;
  spawn_commit(spawn, &run_closure<Closure>);
  return Spawned::kYes;
}

// Whether a goroutine can own copies of a function and its arguments, and call the one with the others.
template <class F, class... Args>
concept GoroutineFunction = std::constructible_from<std::decay_t<F>, F> &&
                            (std::constructible_from<std::decay_t<Args>, Args> && ...) &&
                            std::invocable<std::decay_t<F>, std::decay_t<Args>...>;

// The same, and says in one line of the compiler's what does not fit.
template <class F, class... Args>
constexpr bool fits_goroutine() {
  static_assert(std::constructible_from<std::decay_t<F>, F>,
                "the function of a goroutine cannot be copied: pass it with std::move()");
  static_assert(
      (std::constructible_from<std::decay_t<Args>, Args> && ...),
      "an argument of a goroutine cannot be copied: pass it with std::move(), or with std::ref() if it "
      "outlives the goroutine");
  if constexpr (sizeof...(Args) == 0) {
    static_assert(std::invocable<std::decay_t<F>>,
                  "the function of a goroutine must be callable without arguments: capture them, or pass "
                  "them behind the function");
  } else {
    static_assert(
        std::invocable<std::decay_t<F>, std::decay_t<Args>...>,
        "the function of a goroutine cannot be called with copies of these arguments: are they of the "
        "right number and types, and references passed with std::ref()?");
  }
  return GoroutineFunction<F, Args...>;
}

// The same for a goroutine whose result nobody gets.
template <class F, class... Args>
constexpr bool fits_without_result() {
  if constexpr (fits_goroutine<F, Args...>()) {
    using R = std::remove_cvref_t<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>>;
    static_assert(!tuza::detail::kIsExpected<R>,
                  "the error that this function returns would be lost: handle it in the function, or start "
                  "it by ErrorGroup::go(), whose wait() returns it");
    return !tuza::detail::kIsExpected<R>;
  } else {
    return false;
  }
}

template <class F>
Spawned spawn(const GoOptions& options, F&& function, bool may_fail, const std::source_location& where) {
  if constexpr (fits_without_result<F>()) {
    return spawn_closure<std::decay_t<F>>(options, may_fail, where, std::forward<F>(function));
  } else {
    return Spawned::kNotRunning;
  }
}

// Starts the goroutine of go(function, arguments...).
struct GoStarter {
  using Started = Spawned;
  template <class F, class... Args>
  static constexpr bool fits() {
    return fits_without_result<F, Args...>();
  }
  template <class F, class... Args>
  Spawned start(const std::source_location& where, F&& function, Args&&... args) const {
    return spawn_closure<BoundCallOf<F, Args...>>(options, may_fail, where, std::in_place,
                                                  std::forward<F>(function), std::forward<Args>(args)...);
  }

  const GoOptions& options;
  bool may_fail;
};

// The first parameter of a go() with arguments: any function object converts to it, and so it can have a default
// argument after it that is the place of the call. The function object must outlive it. A Starter checks the types by
// fits() and starts the goroutine by start(): GoStarter, or MemberStarter of a group.
template <class Starter, class... Args>
class FunctionOf {
  using Started = Starter::Started;

 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, GoOptions>)
  FunctionOf(F&& function, const std::source_location& where = std::source_location::current())  // NOLINT
      : where_(where) {
    if constexpr (Starter::template fits<F, Args...>()) {
      if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
        refers_to_.function = reinterpret_cast<void (*)()>(&function);
      } else {
        refers_to_.object = const_cast<void*>(static_cast<const void*>(std::addressof(function)));
      }
      start_ = &start_call<F>;
    }
  }

  Started start(Starter& starter, Args&&... args) const {
    return start_(*this, starter, std::forward<Args>(args)...);
  }

 private:
  template <class F>
  static Started start_call(const FunctionOf& self, Starter& starter, Args&&... args) {
    using Object = std::remove_reference_t<F>;
    Object* object = nullptr;
    if constexpr (std::is_function_v<Object>) {
      object = reinterpret_cast<Object*>(self.refers_to_.function);
    } else {
      object = static_cast<Object*>(self.refers_to_.object);
    }
    return starter.start(self.where_, std::forward<F>(*object), std::forward<Args>(args)...);
  }

  union {
    void* object;
    void (*function)();
  } refers_to_{nullptr};
  Started (*start_)(const FunctionOf& self, Starter& starter, Args&&... args) = nullptr;
  std::source_location where_;
};

// The place of the call is a parameter of go() itself; as an argument of the function it would be ambiguous.
template <class... Args>
concept GoroutineArguments = sizeof...(Args) > 0 &&
                             (!std::same_as<std::remove_cvref_t<Args>, std::source_location> && ...);

}  // namespace rt
}  // namespace tuza
