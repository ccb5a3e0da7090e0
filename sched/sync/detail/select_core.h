// The engine of select (select.h): one wait for several channels and events, exactly one of which is chosen.
//
// There are two phases. The first phase takes all locks, in the order of their addresses and each lock once,
// so that there is no circular wait. Under the locks, the set of ready cases is consistent, and one of them
// is chosen at random. If no case is ready, one place is queued for each case before any lock is released:
// every later partner finds it. Then the locks are released, and the goroutine waits. A thread that can
// serve a place claims the Wait, once for all places. In the second phase the goroutine, awake again, leaves
// the other queues, taking one lock at a time. Between the two phases its places may stand in queues
// although their Wait is claimed; threads that find them there remove them.
//
// All ready cases have equal chances: the k-th ready case replaces the previous choice with probability 1/k.
// (J. Vitter, "Random sampling with a reservoir", 1985, for a sample of one.)
//
// Thread-safe. Parks the G (a thread sleeps) if nothing is ready and there is no kOtherwise.
// sched/model/select.pml models this in Promela.
#pragma once

#include <tuza/sched/sync/detail/chan_core.h>
#include <tuza/sched/sync/detail/wait.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tuza::rt {

// A source that a select can wait for besides channels: an Event, and any object with a lock and a queue of
// waiters. ready() and take() are called under lock().
template <class S>
concept SelectSource = requires(S& source) {
  { source.lock() } -> std::same_as<SpinLock&>;
  { source.queue() } -> std::same_as<WaitQueue&>;
  // Whether the source is ready and its readiness has not been consumed.
  { source.ready() } -> std::same_as<bool>;
  // A caller consumes the readiness. Not called for a place that was claimed in the queue: the claimant has
  // already done what is needed.
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

  // The Waiter::Leave of `place`: the select will never continue.
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
    // Called under the lock that lock_all() takes, as one of a set: the analysis does not follow that.
    source_ready = [](void* s) TUZA_NO_THREAD_SAFETY_ANALYSIS { return static_cast<S*>(s)->ready(); };
    source_take = [](void* s) TUZA_NO_THREAD_SAFETY_ANALYSIS { static_cast<S*>(s)->take(); };
    lock = &object.lock();
    queue = &object.queue();
  }

  Kind kind;
  Finish finish;             // calls the user's function, with no lock held and outside the runtime
  ChanCore* chan = nullptr;  // kRecv, kSend
  void* source = nullptr;    // kSource
  bool (*source_ready)(void* source) = nullptr;
  void (*source_take)(void* source) = nullptr;
  void* slot = nullptr;         // kRecv: where to construct the element; kSend: the element
  std::int64_t timeout_ns = 0;  // kAfter: from the beginning of the select
  SpinLock* lock = nullptr;     // of the channel or source; null: nil, never ready
  WaitQueue* queue = nullptr;   // the queue that the case waits in

  // Used while a select runs.
  bool got_element = false;     // kRecv, when chosen: false if the channel was closed
  std::size_t number = 0;       // position among the cases
  std::optional<Waiter> place;  // in `queue`
};

// Chooses a case, and returns its number. `scratch` has room for all cases.
std::size_t select_cases(std::span<SelectCase* const> cases, std::span<SelectCase*> scratch);

// The same for a number of cases known only at run time. Allocates `scratch`.
std::size_t select_many(std::span<SelectCase* const> cases);

}  // namespace tuza::rt
