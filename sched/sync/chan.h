// Public header, part of <tuza/sync.h>.
//
// Chan: a channel, through which goroutines and threads pass values to each other.
//
//     tuza::Chan<Job> jobs{64};                // Chan<Job> jobs; has no buffer: sender and receiver meet
//     tuza::go([&jobs] {
//       for (auto& job : jobs) work(job);      // until the channel is closed and empty
//     });
//     jobs.send(Job{1});
//     jobs.close();
//
//     std::optional<Job> job = jobs.recv();    // nullopt: closed and empty
//     if (auto job = jobs.try_recv()) work(*job);
//     else if (job.error() == tuza::TryRecvError::kClosed) return;
//
// First in, first out: elements leave in the order in which they entered, and waiting callers are served in
// the order in which they came. If a receiver waits, an element goes straight to it.
//
// Ordering: everything done before send(x) is visible after the recv() that returns x. Everything done
// before close() is visible after the recv() that reports it. In a channel of capacity C, everything done
// before the k-th recv() is visible after the (k+C)-th send() has returned.
//
// Thread-safe: any number of senders and receivers, goroutines and threads, inside and outside tuza::run.
// send(), recv() and loops over a channel park the goroutine (a thread blocks) if they have to wait; nothing
// else parks. The only allocation is the buffer, once.
//
// Lifetime: the channel must outlive all calls on it and all views of it, with one exception: a receiver
// that got the last element, or saw the channel closed, may destroy the channel while the sender's call is
// still returning. Destroying a channel with waiters aborts and names them. Elements left in the buffer are
// destroyed with the channel. Where no scope outlives all users, make the channel by make_chan()
// (sched/sync/shared_chan.h).
//
// Misuse aborts with a report of the goroutine and its stack: sending on a closed channel, also if the
// sender was already waiting when the channel was closed; closing twice; closing nil.
//
// T may be move-only. Its move constructor and its destructor must be noexcept, because elements are moved
// between other goroutines' stacks, under a lock; keep both short. Neither may call into a channel.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/chan_core.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace tuza {

class Context;

// Why try_recv() returned no element.
enum class TryRecvError { kEmpty, kClosed };  // kEmpty: an element may come; kClosed: none ever will

namespace rt {

template <class T>
inline constexpr Element kElement{
    .bytes = sizeof(T),
    .alignment = alignof(T),
    .is_word = sizeof(T) == sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>,
    .move = [](void* to, void* from) noexcept { ::new (to) T(std::move(*static_cast<T*>(from))); },
    .relocate =
        [](void* to, void* from) noexcept {
          ::new (to) T(std::move(*static_cast<T*>(from)));
          std::destroy_at(static_cast<T*>(from));
        },
    .destroy = [](void* element) noexcept { std::destroy_at(static_cast<T*>(element)); },
};

// Uninitialized storage for an element that is about to arrive.
template <class T>
union Slot {
  Slot() {}   // NOLINT: the sender constructs the element
  ~Slot() {}  // NOLINT: take() destroys it
  std::optional<T> take() {
    std::optional<T> out(std::in_place, std::move(element));
    std::destroy_at(&element);
    return out;
  }
  T element;
};

// Operations of the sending end.
template <class T, class Self>
class SendEnd {
 public:
  // Waits until a receiver or the buffer has taken the element. Parks. Aborts if the channel is closed.
  void send(T value) const {
    if (core() == nullptr) wait_on_nil();
    core()->send(std::addressof(value));
  }
  // The same, but if `context` ends first, returns its cause and destroys the element. A context that has
  // already ended wins even if a receiver waits for the element.
  [[nodiscard]] Result<void> send(const tuza::Context& context, T value) const {
    return chan_send(core(), std::addressof(value), context);
  }
  // False: send() would have to wait; `value` is untouched. Aborts if the channel is closed.
  [[nodiscard]] bool try_send(T&& value) const {
    return core() != nullptr && core()->try_send(std::addressof(value));
  }
  [[nodiscard]] bool try_send(const T& value) const
    requires std::copy_constructible<T>
  {
    T copy(value);
    return try_send(std::move(copy));
  }
  // No more elements will be sent. Waiting receivers learn this once the channel is empty. Does not park.
  void close() const {
    if (core() == nullptr) fatal_close_of_nil();
    core()->close();
  }
  // The number of elements in the buffer, and its capacity. Both are 0 for a nil channel.
  [[nodiscard]] std::size_t len() const { return core() == nullptr ? 0 : core()->length(); }
  [[nodiscard]] std::size_t cap() const { return core() == nullptr ? 0 : core()->capacity(); }

 private:
  friend Self;  // nobody else derives from it
  SendEnd() = default;
  [[nodiscard]] ChanCore* core() const { return static_cast<const Self*>(this)->core(); }
};

// Operations of the receiving end.
template <class T, class Self>
class RecvEnd {
 public:
  class Iterator;

  // Returns the next element; nullopt when the channel is closed and empty. Parks.
  std::optional<T> recv() const {
    Slot<T> slot;
    if (!receive(core(), slot)) return std::nullopt;
    return slot.take();
  }
  // The same, but if `context` ends first, returns its cause. A context that has already ended wins even if
  // there are elements.
  [[nodiscard]] Result<std::optional<T>> recv(const tuza::Context& context) const {
    Slot<T> slot;
    const Result<bool> got = chan_recv(core(), &slot, context);
    if (!got) return std::unexpected(got.error());
    if (!*got) return std::nullopt;
    return slot.take();
  }
  // Returns an element that is available now. Does not park.
  [[nodiscard]] std::expected<T, TryRecvError> try_recv() const {
    Slot<T> slot;
    switch (core() == nullptr ? ChanCore::Attempt::kWouldBlock : core()->try_recv(&slot)) {
      case ChanCore::Attempt::kDone: return *slot.take();
      case ChanCore::Attempt::kClosed: return std::unexpected(TryRecvError::kClosed);
      case ChanCore::Attempt::kWouldBlock: break;
    }
    return std::unexpected(TryRecvError::kEmpty);
  }
  [[nodiscard]] std::size_t len() const { return core() == nullptr ? 0 : core()->length(); }
  [[nodiscard]] std::size_t cap() const { return core() == nullptr ? 0 : core()->capacity(); }

  // for (auto& job : jobs): visits each element, until the channel is closed and empty. Every step parks. `job`
  // is the loop's own until the next step: change it, or move it on.
  Iterator begin() const { return Iterator(core()); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  friend Self;  // nobody else derives from it
  RecvEnd() = default;
  [[nodiscard]] ChanCore* core() const { return static_cast<const Self*>(this)->core(); }
  static bool receive(ChanCore* from, Slot<T>& slot) {
    if (from == nullptr) wait_on_nil();
    return from->recv(&slot) == ChanCore::Attempt::kDone;
  }
};

// Single-pass. *it is the element received last, which ++it destroys.
template <class T, class Self>
class RecvEnd<T, Self>::Iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(ChanCore* core) : core_(core) { ++*this; }
  Iterator(Iterator&&) = default;
  Iterator& operator=(Iterator&&) = default;

  T& operator*() const { return *current_; }
  Iterator& operator++() {
    current_.reset();
    Slot<T> slot;
    if (receive(core_, slot)) {
      current_.emplace(std::move(slot.element));
      std::destroy_at(&slot.element);
    }
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !current_.has_value(); }

 private:
  ChanCore* core_;
  mutable std::optional<T> current_;
};

}  // namespace rt

template <class T>
class Chan : public rt::SendEnd<T, Chan<T>>, public rt::RecvEnd<T, Chan<T>> {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a channel carries values, no references");
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "what goes through a channel is moved between stacks under a lock: its move constructor and "
                "its destructor must be noexcept (wrap it in a std::unique_ptr if they are not)");

 public:
  // Buffers up to `capacity` elements; the buffer is allocated here. With capacity 0, send() waits for a
  // receiver.
  explicit Chan(std::size_t capacity = 0) : core_(rt::kElement<T>, capacity) {}
  Chan(const Chan&) = delete;  // pass a Chan& or a view, or make the channel by make_chan()
  Chan& operator=(const Chan&) = delete;
  // Never moves. It is declared so that a channel in a std::vector, or returned, gets an error of one line; a template,
  // so that an explicit instantiation of the class does not.
  template <class Moved>
    requires std::same_as<Moved, Chan>
  Chan(Moved&&) noexcept(false) : Chan() {
    static_assert(sizeof(Moved) == 0,
                  "a Chan cannot be moved, returned or kept in a std::vector: make it by "
                  "tuza::make_chan(), which returns a handle");
  }

  using rt::SendEnd<T, Chan>::len;
  using rt::SendEnd<T, Chan>::cap;

  // For views and select.
  [[nodiscard]] rt::ChanCore* core() const { return &core_; }

 private:
  mutable rt::ChanCore core_;  // mutable: const callers send and receive, too
};

// A view of the sending end. It is copied freely. The view object itself is thread-compatible, like a
// pointer; its use is as thread-safe as the channel. Without a channel it is nil: send() waits for ever, and
// a select case on it is never ready.
template <class T>
class SendChan : public rt::SendEnd<T, SendChan<T>> {
 public:
  SendChan() = default;
  SendChan(const Chan<T>& chan) : core_(chan.core()) {}  // NOLINT: a channel converts to its view, as in Go

  [[nodiscard]] rt::ChanCore* core() const { return core_; }
  explicit operator bool() const { return core_ != nullptr; }

 private:
  rt::ChanCore* core_ = nullptr;
};

// A view of the receiving end. Without a channel it is nil: recv() waits for ever, and a select case on it
// is never ready.
template <class T>
class RecvChan : public rt::RecvEnd<T, RecvChan<T>> {
 public:
  RecvChan() = default;
  RecvChan(const Chan<T>& chan) : core_(chan.core()) {}  // NOLINT: a channel converts to its view, as in Go

  [[nodiscard]] rt::ChanCore* core() const { return core_; }
  explicit operator bool() const { return core_ != nullptr; }

 private:
  rt::ChanCore* core_ = nullptr;
};

}  // namespace tuza
