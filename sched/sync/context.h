// Public header, part of <tuza/sync.h>.
//
// Context: when to stop, by when, and what belongs to the request; handed down from caller to callee.
//
//     // Ends after 2 s, with `request`, or with `cancel`, whichever comes first.
//     auto [ctx, cancel] = tuza::with_timeout(request, 2s);
//     for (Shard& shard : shards) tuza::go([ctx, &shard] { shard.search(ctx); });
//     tuza::Result<std::optional<Row>> row = rows.recv(ctx);        // a wait that ends with the context
//     if (!row) return std::unexpected(row.error());                // ctx.cause()
//
// A context ends once, with a cause. Contexts are a tree: what ends one ends all that were made from it, with
// the same cause; a child never ends its parent. Each call of Tuza's that can wait takes a context, and
// returns std::unexpected(ctx.cause()) if that ended first. A loop that computes asks done().
//
// The canceller that comes with a context is what `defer cancel()` is in Go: when it goes out of scope the
// context ends, and its memory, timer and place in its parent are free.
//
// Ordering: what was done before a context was ended is visible to whoever sees that it has ended. When the
// call of a canceller returns the context has ended, and if that call ended it so have those made from it,
// but for those that another canceller or a deadline has just begun to end.
//
// Lifetime: a Context is a handle; copy it, it is as cheap as a shared_ptr. The state lives as long as a
// handle to it or to a child. Contexts are not tied to the scope they were made in, their cancellers are.
//
// Thread-safe, one handle apart: two threads must not assign to one object. Nothing here parks but wait(). A
// context that has a deadline needs tuza::run; the others do not. Source: Go's context.
#pragma once

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace tuza {

namespace rt {
class Event;
class ContextNode;
class CancelNode;
class ContextFunction;
}  // namespace rt

// Names a value that contexts carry, and its type. The object is the key: two keys of one name are two keys.
//
//     inline constexpr tuza::ContextKey<User> kUser{"user"};
template <class T>
class ContextKey {
 public:
  constexpr explicit ContextKey(std::string_view name) : name_(name) {}
  ContextKey(const ContextKey&) = delete;
  ContextKey& operator=(const ContextKey&) = delete;
  [[nodiscard]] std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

class Context {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Never ends, has no values: the root of all others. Costs nothing.
  Context() = default;
  static Context background() { return {}; }

  Context(const Context& other);
  Context(Context&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Context& operator=(Context other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Context();

  // Whether it has ended.
  [[nodiscard]] bool done() const;
  // What it was ended with: Errc::kCancelled, Errc::kTimeout, or what the canceller gave. While it has not
  // ended, an Error whose code is 0.
  [[nodiscard]] Error cause() const;
  // Both: nothing while it goes on, then the cause. For loops: if (auto ok = ctx.check(); !ok) return ok;
  [[nodiscard]] Result<void> check() const;

  // Waits until it ends, for ever if it never does. Parks (a thread blocks).
  void wait() const;

  // When it ends at the latest; nothing if there is no limit.
  [[nodiscard]] std::optional<TimePoint> deadline() const;

  // What with_value() put there, nearest first; null if nobody did. Valid as long as this handle or one to a
  // child is.
  template <class T>
  [[nodiscard]] const T* value(const ContextKey<T>& key) const {
    return static_cast<const T*>(find(&key));
  }

  // For calls that wait (rt::Until, select): happens when the context ends; null if it never can. Valid as
  // long as this handle.
  [[nodiscard]] rt::Event* event() const;

 private:
  friend class Canceller;
  friend class AfterFunc;
  friend struct ContextMaker;
  explicit Context(rt::ContextNode* node) : node_(node) {}  // takes the reference over
  [[nodiscard]] const void* find(const void* key) const;
  [[nodiscard]] rt::CancelNode* scope() const;  // the nearest that can end; null: none

  rt::ContextNode* node_ = nullptr;
};

// Ends its context when it is called or destroyed, once; later calls do nothing. A canceller that was moved
// from does nothing either. Does not park.
class [[nodiscard]] Canceller {
 public:
  Canceller() = default;
  Canceller(Canceller&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Canceller& operator=(Canceller&& other) noexcept;
  ~Canceller();

  // Errc::kCancelled.
  void operator()() const;
  void operator()(Error cause) const;
  // Lets the context live on: it ends with its parent or at its deadline.
  void detach();

 private:
  friend struct ContextMaker;
  explicit Canceller(rt::CancelNode* node) : node_(node) {}  // takes the reference over
  rt::CancelNode* node_ = nullptr;
};

// auto [ctx, cancel] = with_cancel(parent);
struct [[nodiscard]] CancellableContext {
  Context ctx;
  Canceller cancel;
};

CancellableContext with_cancel(const Context& parent);

// Ends at `when` at the latest, with `cause`. A deadline of the parent that is earlier stays. One in the past
// ends it at once. Inside tuza::run only.
CancellableContext with_deadline(const Context& parent, rt::AnyTimePoint when,
                                 Error cause = Error(Errc::kTimeout, "context"));
CancellableContext with_timeout(const Context& parent, rt::AnyDuration timeout,
                                Error cause = Error(Errc::kTimeout, "context"));

// The values of `parent`, but neither its end nor its deadline: for what must outlive the request.
[[nodiscard]] Context without_cancel(const Context& parent);

// `parent` with a value more. Values are for what crosses API boundaries with the request (its id, its user),
// not for optional parameters: finding one takes as many steps as there are contexts above.
namespace detail {
[[nodiscard]] Context with_erased_value(const Context& parent, const void* key,
                                        std::shared_ptr<const void> value);
}
template <class T, class U = T>
[[nodiscard]] Context with_value(const Context& parent, const ContextKey<T>& key, U&& value) {
  return detail::with_erased_value(parent, &key, std::make_shared<const T>(std::forward<U>(value)));
}

// What after_func() has registered. Destroying it stops the function, unless detach() was called.
class [[nodiscard]] AfterFunc {
 public:
  AfterFunc(AfterFunc&& other) noexcept
      : ctx_(std::move(other.ctx_)), function_(std::exchange(other.function_, nullptr)) {}
  AfterFunc& operator=(AfterFunc&&) = delete;
  ~AfterFunc();

  // True: the function will not run, thanks to this call. False: it has been started, and may still be
  // running, or was stopped before. Does not wait for it.
  bool stop();
  // Lets it stand when this object goes.
  void detach();

 private:
  friend struct ContextMaker;
  AfterFunc(Context ctx, rt::ContextFunction* function) : ctx_(std::move(ctx)), function_(function) {}

  Context ctx_;
  rt::ContextFunction* function_;  // a reference; null: stopped or detached
};

// Runs `function` in a goroutine of its own when `ctx` ends; at once if it has ended. An exception that
// leaves it ends the process, as with go(). Does not park; does not keep the context.
AfterFunc after_func(const Context& ctx, std::move_only_function<void()> function);

namespace detail {
// The same, but whoever ends the context calls it, on the spot: it must neither park nor throw, and take a
// few instructions. It may come late, while or after stop() says false. For waits of other layers.
AfterFunc at_end(const Context& ctx, std::move_only_function<void()> function);
}  // namespace detail

}  // namespace tuza
