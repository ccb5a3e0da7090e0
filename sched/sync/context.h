// Public header, part of <tuza/sync.h>.
//
// Context: cancellation, deadline and values of a request; handed down from caller to callee.
//
//     // Ends after 2 s, with `parent`, or with `cancel`, whichever comes first.
//     auto [ctx, cancel] = tuza::with_timeout(parent, 2s);
//     for (Shard& shard : shards) tuza::go([ctx, &shard] { shard.search(ctx); });
//     tuza::Result<std::optional<Row>> row = rows.recv(ctx);        // a wait that ends with the context
//     if (!row) return std::unexpected(row.error());                // ctx.cause()
//
// A context ends once, with a cause. Contexts form a tree: the end of a context ends all contexts made from
// it, with the same cause; a child never ends its parent. Waits on primitives, timers and connections take a
// context, and return std::unexpected(ctx.cause()) if the context ends first; calls on files and the body of
// an HTTP request take none. A loop that computes checks done().
//
// The canceller returned with a context corresponds to `defer cancel()` in Go: when the canceller goes out
// of scope, the context ends, and its memory, its timer and its place in the parent are freed.
//
// Ordering: everything done before a context ended is visible to every caller that sees that it has ended.
// When the call of a canceller returns, the context has ended. If this call ended the context, all contexts
// made from it have ended as well, except those that another canceller or a deadline has just begun to end.
//
// Lifetime: a Context is a handle, and as cheap to copy as a shared_ptr. The state lives as long as a handle
// to the context or to a child of it. Contexts are not tied to the scope they were made in; their cancellers
// are.
//
// Thread-safe, with one exception: two threads must not assign to the same handle. Only wait() parks. Only
// contexts with a deadline need tuza::run. Source: Go's context.
#pragma once

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/detail/lost_result.h>
#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tuza {

namespace rt {
class Event;
class ContextNode;
class CancelNode;
class ContextFunction;
}  // namespace rt

// Identifies a value that contexts carry, and its type. The key is the object: two keys with the same name
// are different keys.
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

class CancellableContext;

class Context {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The root of all contexts: it never ends, has no values, and costs nothing.
  Context() = default;
  static Context background() { return {}; }

  Context(const Context& other);
  Context(Context&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  template <class T>
    requires std::same_as<std::remove_cvref_t<T>, CancellableContext>
  Context(T&&) {  // NOLINT: says what is missing
    static_assert(!std::same_as<std::remove_cvref_t<T>, CancellableContext>,
                  "this is a context with its canceller: keep both, auto [ctx, cancel] = ..., and pass ctx");
  }
  Context& operator=(Context other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Context();

  // Whether the context has ended.
  [[nodiscard]] bool done() const;
  // Why the context ended: Errc::kCancelled, Errc::kTimeout, or the error passed to the canceller. Before
  // the end, an Error whose code is 0.
  [[nodiscard]] Error cause() const;
  // Success before the end, then the cause. For loops: if (auto ok = ctx.check(); !ok) return ok;
  [[nodiscard]] Result<void> check() const;

  // Waits until the context ends; for ever if it never does. Parks (a thread blocks).
  void wait() const;

  // The latest time at which the context ends; nullopt if there is no limit.
  [[nodiscard]] std::optional<TimePoint> deadline() const;

  // The value that with_value() attached under `key`, nearest ancestor first; null if there is none. Valid
  // as long as this handle, or a handle to a child.
  template <class T>
  [[nodiscard]] const T* value(const ContextKey<T>& key) const {
    return static_cast<const T*>(find(&key));
  }

  // For calls that wait (rt::Until, select): the event fires when the context ends. Null if it can never
  // end. Valid as long as this handle.
  [[nodiscard]] rt::Event* event() const;

 private:
  friend class Canceller;
  friend class WhenDone;
  friend struct ContextMaker;
  explicit Context(rt::ContextNode* node) : node_(node) {}  // takes over the reference
  [[nodiscard]] const void* find(const void* key) const;
  [[nodiscard]] rt::CancelNode* scope() const;  // the nearest node that can end; null: none

  rt::ContextNode* node_ = nullptr;
};

// Ends its context when it is called or destroyed, once; later calls do nothing. A moved-from canceller does
// nothing. Does not park.
class [[nodiscard]] Canceller {
 public:
  Canceller() = default;
  Canceller(Canceller&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Canceller& operator=(Canceller&& other) noexcept;
  ~Canceller();

  // Ends the context with Errc::kCancelled.
  void operator()() const;
  void operator()(Error cause) const;
  // Gives up control of the context: it then ends only with its parent or at its deadline.
  void detach();

 private:
  friend struct ContextMaker;
  explicit Canceller(rt::CancelNode* node) : node_(node) {}  // takes over the reference
  rt::CancelNode* node_ = nullptr;
};

// A new context, and its canceller: auto [ctx, cancel] = with_cancel(parent); or a member of that type. It must
// be kept, because the context ends with the canceller.
class [[nodiscard]] CancellableContext {
 public:
  CancellableContext() = default;  // the root, and a canceller that does nothing
  [[nodiscard]] const Context& ctx() const& { return ctx_; }
  template <bool kKept = false>
  const Context& ctx() && {
    static_assert(kKept,
                  "this context would end at once, with its canceller: keep both, auto [ctx, cancel] = ...");
    return ctx_;
  }

  // Ends the context, as the canceller does.
  void cancel() const { canceller_(); }
  void cancel(Error cause) const { canceller_(std::move(cause)); }
  [[nodiscard]] Canceller& canceller() & { return canceller_; }

  // For structured bindings.
  template <std::size_t kIndex>
  auto& get() & {
    return part<kIndex>(*this);
  }
  template <std::size_t kIndex>
  auto& get() const& {
    return part<kIndex>(*this);
  }
  template <std::size_t kIndex>
  auto&& get() && {
    return std::move(part<kIndex>(*this));
  }
  template <std::size_t kIndex>
  auto&& get() const&& {
    return std::move(part<kIndex>(*this));
  }

 private:
  friend struct ContextMaker;
  CancellableContext(Context ctx, Canceller canceller)
      : ctx_(std::move(ctx)), canceller_(std::move(canceller)) {}
  template <std::size_t kIndex, class Self>
  static auto& part(Self& self) {
    if constexpr (kIndex == 0) {
      return self.ctx_;
    } else {
      return self.canceller_;
    }
  }

  Context ctx_;
  Canceller canceller_;
};

CancellableContext with_cancel(const Context& parent);

// The new context ends with `cause` at `when` at the latest. An earlier deadline of the parent still
// applies. A deadline in the past ends the context at once. Inside tuza::run only.
CancellableContext with_deadline(const Context& parent, rt::AnyTimePoint when,
                                 Error cause = Error(Errc::kTimeout, "context"));
CancellableContext with_timeout(const Context& parent, rt::AnyDuration timeout,
                                Error cause = Error(Errc::kTimeout, "context"));

// Keeps the values of `parent`, but neither its end nor its deadline: for work that must outlive the
// request.
[[nodiscard]] Context without_cancel(const Context& parent);

// `parent` with one more value. Values are for data that crosses API boundaries with the request (its id,
// its user), not for optional parameters: a lookup takes as many steps as there are contexts above.
namespace detail {
[[nodiscard]] Context with_erased_value(const Context& parent, const void* key,
                                        std::shared_ptr<const void> value);
}
template <class T, class U = T>
[[nodiscard]] Context with_value(const Context& parent, const ContextKey<T>& key, U&& value) {
  return detail::with_erased_value(parent, &key, std::make_shared<const T>(std::forward<U>(value)));
}

// The registration made by when_done(). Its destructor stops the function, unless detach() was called.
class [[nodiscard]] WhenDone {
 public:
  WhenDone(WhenDone&& other) noexcept
      : ctx_(std::move(other.ctx_)), function_(std::exchange(other.function_, nullptr)) {}
  WhenDone& operator=(WhenDone&&) = delete;
  ~WhenDone();

  // True: this call has prevented the function from running. False: the function was started, and may still
  // be running, or was stopped before. Does not wait for the function.
  bool stop();
  // Keeps the registration in force after this object is destroyed.
  void detach();

 private:
  friend struct ContextMaker;
  WhenDone(Context ctx, rt::ContextFunction* function) : ctx_(std::move(ctx)), function_(function) {}

  Context ctx_;
  rt::ContextFunction* function_;  // holds a reference; null: stopped or detached
};

// Runs `function` in a goroutine of its own when `ctx` ends; at once if `ctx` has already ended. An
// exception that escapes the function ends the process, as with go(). Does not park. The registration does
// not keep the context alive; the handle does.
WhenDone when_done(const Context& ctx, MoveOnlyFunction<void()> function);
template <class F>
  requires(detail::kReturnsResult<F>)
WhenDone when_done(const Context& ctx, F&&) {
  detail::refuse_lost_result<F>();
  return when_done(ctx, MoveOnlyFunction<void()>());
}

namespace detail {
// The same, but the thread that ends the context calls the function directly: the function must neither park
// nor throw, and take only a few instructions. It may run late, while or after stop() returns false. For
// waits of other layers.
WhenDone at_end(const Context& ctx, MoveOnlyFunction<void()> function);
}  // namespace detail

}  // namespace tuza

template <>
struct std::tuple_size<tuza::CancellableContext> : std::integral_constant<std::size_t, 2> {};
template <>
struct std::tuple_element<0, tuza::CancellableContext> {
  using type = tuza::Context;
};
template <>
struct std::tuple_element<1, tuza::CancellableContext> {
  using type = tuza::Canceller;
};
