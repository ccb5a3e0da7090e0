// The engine of select (select.h): one wait for several channels and events, of which exactly one comes
// about.
//
// Two phases. First all locks, in the order of their addresses and each once, so that nobody waits in a
// circle; under them it is true at one moment which cases are ready, and one of these is taken by lot. If
// there is none, one place is queued for each case before any lock is released: whoever comes later finds it.
// Then the locks go, and the goroutine waits. Whoever can serve a place claims the Wait, once for all places.
// In the second phase, awake again, it leaves the other queues, taking one lock at a time. Between the
// two its places may stand in queues although their Wait is claimed; those who find them throw them out.
//
// The lot is drawn among all that are ready, with equal chances: the k-th one found replaces the one before
// with probability 1/k. (J. Vitter, "Random sampling with a reservoir", 1985, for a sample of one.)
//
// Thread-safe. Parks the G (a thread sleeps), if nothing is ready and there is no kOtherwise.
// sched/model/select.pml is this in Promela.
#pragma once

#include <tuza/sched/sync/detail/chan_core.h>
#include <tuza/sched/sync/detail/wait.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tuza::rt {

// What a select can wait for besides channels: an Event, and whatever else has a lock and a queue of waiters.
// All three functions are called under lock().
template <class S>
concept SelectSource = requires(S& source) {
  { source.lock() } -> std::same_as<SpinLock&>;
  { source.queue() } -> std::same_as<WaitQueue&>;
  // It has come about, and nobody has been served with it.
  { source.ready() } -> std::same_as<bool>;
  // Somebody is being served with it. Not called for a place that was claimed in the queue: who claims it has
  // done what is to be done.
  { source.take() } -> std::same_as<void>;
};

// A case, before, during and after a select. Thread-unsafe: one select at a time.
struct SelectCase {
  enum class Kind : std::uint8_t { kRecv, kSend, kSource, kAfter, kOtherwise };
  using Finish = void (*)(SelectCase& chosen);

  SelectCase(Kind which, Finish then) : kind(which), finish(then) {}
  SelectCase(const SelectCase&) = delete;
  SelectCase& operator=(const SelectCase&) = delete;
  SelectCase(SelectCase&& other) noexcept
      : kind(other.kind),
        finish(other.finish),
        chan(other.chan),
        source(other.source),
        source_ready(other.source_ready),
        source_take(other.source_take),
        slot(other.slot),
        timeout_ns(other.timeout_ns),
        lock(other.lock),
        queue(other.queue) {}

  // Its `place`: the select will never go on.
  static void leave_select(Waiter& place, Waiter::Outcome outcome);

  void wait_for(ChanCore* core) {
    if (core == nullptr) return;
    chan = core;
    lock = &core->lock();
    queue = kind == Kind::kRecv ? &core->receivers() : &core->senders();
  }
  template <SelectSource S>
  void wait_for(S& object) {
    source = &object;
    source_ready = [](void* s) { return static_cast<S*>(s)->ready(); };
    source_take = [](void* s) { static_cast<S*>(s)->take(); };
    lock = &object.lock();
    queue = &object.queue();
  }

  Kind kind;
  Finish finish;             // calls the user's function, outside of everything
  ChanCore* chan = nullptr;  // kRecv, kSend
  void* source = nullptr;    // kSource
  bool (*source_ready)(void* source) = nullptr;
  void (*source_take)(void* source) = nullptr;
  void* slot = nullptr;         // kRecv: where the element is made; kSend: where it is
  std::int64_t timeout_ns = 0;  // kAfter, from the beginning of the select
  SpinLock* lock = nullptr;     // of the channel or source; null: nil, never ready
  WaitQueue* queue = nullptr;   // where it waits

  // While it runs.
  bool got_element = false;     // kRecv, when chosen: false if the channel was closed
  std::size_t number = 0;       // its place among the cases
  std::optional<Waiter> place;  // in `queue`
};

// Chooses one, and returns its number. `scratch` has room for as many.
std::size_t select_cases(std::span<SelectCase* const> cases, std::span<SelectCase*> scratch);

// The same for as many as there are at run time. Allocates the room.
std::size_t select_many(std::span<SelectCase* const> cases);

}  // namespace tuza::rt
