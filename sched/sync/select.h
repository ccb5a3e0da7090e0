// Public header, part of <tuza/sync.h>.
//
// select: waits until one of several operations can proceed, and performs it.
//
//     std::size_t chosen = tuza::select(
//         tuza::on_recv(jobs, [&](std::optional<Job> job) { ... }),     // nullopt: closed and empty
//         tuza::on_send(results, result, [] { ... }),
//         tuza::on_done(context, [&] { stop = true; }),
//         tuza::on_timeout(1s, [] { ... }));
//
//     select(on_recv(jobs, work), otherwise([] { ... }));               // does not wait
//
// In a loop, without functions: the number of a case is its position in the call, and select returns the
// number of the chosen case.
//
//     std::optional<Job> job;
//     switch (select(on_recv(jobs, job), on_recv(quit))) {
//       case 0: if (job) work(*job); break;
//       case 1: return;
//     }
//
// For a number of cases known only at run time, pass a range of cases, or of pointers to cases of several
// types.
//
//     std::vector<decltype(on_recv(inputs[0], take))> cases;
//     for (auto& in : inputs) cases.push_back(on_recv(in, take));
//     std::size_t chosen = select(cases);
//
// Choice: if several cases are ready, each has the same chance. If none is ready, the first to become ready
// is chosen. If none can ever become ready (all are nil, or there are no cases), select waits for ever. A
// channel may be in several cases, in both directions.
//
// Ordering: as for the chosen send, recv or event. The other cases have no effect.
//
// The functions run after the select is complete, on the caller's stack: they may park, select again, throw
// and goexit(). Their results are ignored.
//
// Thread-safe. Parks the goroutine (a thread blocks) if it has to wait; with otherwise() it never parks.
// Only ranges allocate. Lifetime: every channel and event in the cases, not only in the chosen one, must
// outlive the call. Misuse aborts: a chosen send on a closed channel; two otherwise(); one case in two
// selects at once.
#pragma once

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/detail/select_core.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace tuza {

class Context;

namespace rt {

struct Nothing {
  void operator()() const {}
};

template <class T>
struct AssignTo {
  std::optional<T>* into;
  void operator()(std::optional<T> value) const {
    into->reset();
    if (value) into->emplace(std::move(*value));
  }
};

template <class T, class F>
struct RecvCase : SelectCase {
  static_assert(std::invocable<F&, std::optional<T>> || std::invocable<F&>,
                "the function of on_recv() takes a std::optional of the element (nullopt: the channel is "
                "closed and empty), or nothing");

  RecvCase(ChanCore* core, F then) : SelectCase(Kind::kRecv, &run), function(std::move(then)) {
    wait_for(core);
    slot = &element;
  }
  RecvCase(RecvCase&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : SelectCase(std::move(other)), function(std::move(other.function)) {
    slot = &element;
  }

  static void run(SelectCase& chosen) {
    auto& self = static_cast<RecvCase&>(chosen);
    std::optional<T> value = self.got_element ? self.element.take() : std::nullopt;
    if constexpr (std::invocable<F&, std::optional<T>>) {
      std::invoke(self.function, std::move(value));
    } else {
      std::invoke(self.function);
    }
  }

  Slot<T> element;
  F function;
};

// V is T for a copy, or T&& for a reference to the caller's own element.
template <class V, class F>
struct SendCase : SelectCase {
  static_assert(std::invocable<F&>, "the function of on_send() takes nothing");

  SendCase(ChanCore* core, V&& element, F then)
      : SelectCase(Kind::kSend, &run), value(std::forward<V>(element)), function(std::move(then)) {
    wait_for(core);
    slot = std::addressof(value);
  }
  SendCase(SendCase&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : SelectCase(std::move(other)),
        value(std::forward<V>(other.value)),
        function(std::move(other.function)) {
    slot = std::addressof(value);
  }

  static void run(SelectCase& chosen) { std::invoke(static_cast<SendCase&>(chosen).function); }

  V value;
  F function;
};

// on_done, on_ready, on_fire, after, otherwise.
template <class F>
struct PlainCase : SelectCase {
  static_assert(std::invocable<F&>, "the function of this case takes nothing");

  PlainCase(Kind which, F then) : SelectCase(which, &run), function(std::move(then)) {}
  PlainCase(PlainCase&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : SelectCase(std::move(other)), function(std::move(other.function)) {}

  static void run(SelectCase& chosen) { std::invoke(static_cast<PlainCase&>(chosen).function); }

  F function;
};

// Whether a case may outlive the statement it is made in. A case that refers to an rvalue of the caller must
// not.
template <class Case>
inline constexpr bool kMayBeKept = true;
template <class T, class F>
inline constexpr bool kMayBeKept<SendCase<T&&, F>> = false;

template <class R>
concept SourceReference = std::is_lvalue_reference_v<R> && SelectSource<std::remove_reference_t<R>>;

template <class C>
concept IsCase = std::derived_from<std::remove_cvref_t<C>, SelectCase>;

Event* event_of(const tuza::Context& context);

}  // namespace rt

// Receives the next element of `chan` (a Chan or RecvChan), or nullopt if the channel is closed and empty:
// the case is ready either way. A nil channel is never ready.
template <class T, class Self, class F = rt::Nothing>
auto on_recv(const rt::RecvEnd<T, Self>& chan, F function = {}) {
  return rt::RecvCase<T, F>(static_cast<const Self&>(chan).core(), std::move(function));
}
// Stores the element in a variable.
template <class T, class Self>
auto on_recv(const rt::RecvEnd<T, Self>& chan, std::optional<T>& into) {
  return rt::RecvCase<T, rt::AssignTo<T>>(static_cast<const Self&>(chan).core(), rt::AssignTo<T>{&into});
}

// What Go's `<-ctx.Done()` becomes by habit.
template <std::same_as<bool> Done, class... F>
auto on_recv(Done, F&&...) {
  static_assert(!std::same_as<Done, bool>,
                "on_done(ctx) waits for the end of a context: on_recv() takes a channel");
}

// Sends to `chan` (a Chan or SendChan). A closed channel is ready, and sending on it aborts. An lvalue is
// copied when the case is made, and the copy is gone once it has been sent. An rvalue is moved from only if
// this case is chosen, and otherwise stays with the caller; such a case must be written inside the select.
template <class T, class Self, class F = rt::Nothing>
  requires std::copy_constructible<T>
auto on_send(const rt::SendEnd<T, Self>& chan, const std::type_identity_t<T>& value, F function = {}) {
  return rt::SendCase<T, F>(static_cast<const Self&>(chan).core(), T(value), std::move(function));
}
template <class T, class Self, class F = rt::Nothing>
auto on_send(const rt::SendEnd<T, Self>& chan, std::type_identity_t<T>&& value, F function = {}) {
  return rt::SendCase<T&&, F>(static_cast<const Self&>(chan).core(), std::move(value), std::move(function));
}

// Ready when `context` has ended. A context that never ends is never ready.
template <class F = rt::Nothing>
auto on_done(const Context& context, F function = {}) {
  rt::PlainCase<F> made(rt::SelectCase::Kind::kSource, std::move(function));
  if (rt::Event* event = rt::event_of(context); event != nullptr) made.wait_for(*event);
  return made;
}

namespace rt {
// For primitives that are, or have, a source to wait for: results, timers.
template <SelectSource S, class F = Nothing>
auto on_source(S& source, F function = {}) {
  PlainCase<F> made(SelectCase::Kind::kSource, std::move(function));
  made.wait_for(source);
  return made;
}
}  // namespace rt

// Ready when the result is set. `future` is a Future, which the select does not touch; take the result in
// the function.
template <class Result, class F = rt::Nothing>
  requires requires(const Result& future) {
    { future.event() } -> std::same_as<rt::Event&>;
  }
auto on_ready(const Result& future, F function = {}) {
  return rt::on_source(future.event(), std::move(function));
}

// Receives a fire of a Timer or a tick of a Ticker (sched/time).
template <class Timed, class F = rt::Nothing>
  requires requires(Timed& timed) {
    { timed.channel() } -> rt::SourceReference;
  }
auto on_fire(Timed& timed, F function = {}) {
  return rt::on_source(timed.channel(), std::move(function));
}

// Chosen when no other case became ready for this long after the wait began. With several, the shortest
// applies.
template <class Rep, class Period, class F>
auto on_timeout(const std::chrono::duration<Rep, Period>& timeout, F function) {
  rt::PlainCase<F> made(rt::SelectCase::Kind::kAfter, std::move(function));
  made.timeout_ns = timeout > timeout.zero() ? rt::whole_ns(timeout).count() : 0;
  return made;
}

// Chosen when no other case is ready at once.
template <class F = rt::Nothing>
auto otherwise(F function = {}) {
  return rt::PlainCase<F>(rt::SelectCase::Kind::kOtherwise, std::move(function));
}

// The common base of the cases, for ranges of pointers to cases of several types.
using SelectCase = rt::SelectCase;

// Returns the number of the chosen case, from 0.
template <class... Cases>
  requires(rt::IsCase<Cases> && ...)
std::size_t select(Cases&&... cases) {
  static_assert(((!std::is_lvalue_reference_v<Cases> || rt::kMayBeKept<std::remove_cvref_t<Cases>>) && ...),
                "on_send() with an rvalue refers to it: write it inside the select");
  const std::array<rt::SelectCase*, sizeof...(cases)> given{&cases...};
  std::array<rt::SelectCase*, sizeof...(cases)> scratch;
  const std::size_t chosen = rt::select_cases(given, scratch);
  given[chosen]->finish(*given[chosen]);
  return chosen;
}

template <std::ranges::forward_range R>
  requires rt::IsCase<std::ranges::range_reference_t<R>> ||
           rt::IsCase<std::remove_pointer_t<std::ranges::range_value_t<R>>>
std::size_t select(R&& cases) {
  std::vector<rt::SelectCase*> given;
  for (auto& c : cases) {
    if constexpr (rt::IsCase<decltype(c)>) {
      static_assert(rt::kMayBeKept<std::remove_cvref_t<decltype(c)>>,
                    "on_send() with an rvalue refers to it: it cannot be kept in a range");
      given.push_back(&c);
    } else {
      given.push_back(c);
    }
  }
  const std::size_t chosen = rt::select_many(given);
  given[chosen]->finish(*given[chosen]);
  return chosen;
}

}  // namespace tuza
