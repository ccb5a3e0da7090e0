// Public header, part of <tuza/sync.h>.
//
// Future: a result that another goroutine or thread produces.
//
//     tuza::Future<Row> row = tuza::async([&] { return db.find(id); });
//     ... do something else ...
//     use(std::move(row).get());                // waits; rethrows what the function threw
//
//     tuza::Promise<int> promise;               // for results that no single function returns
//     tuza::Future<int> answer = promise.future();
//     tuza::go([promise = std::move(promise)]() mutable { promise.set_value(42); });
//
// Ordering: everything done before the result was set (with async: everything the function did) is visible
// after a wait(), a get(), or a ready() that returned true. With async, the captures of the function, its copies
// of arguments, and the goroutine-locals are destroyed by then, also if the goroutine has ended by goexit().
//
// Lifetime: the result belongs to both sides together. A Future may be dropped before the result is set: the
// function continues, and its result is destroyed (also an exception, silently). A Promise, or a goroutine
// of async, that ends without a result (goexit) leaves std::future_error with broken_promise. A Future must
// not be destroyed during a call to it.
//
// Thread-safe between the two sides; wait() and ready() for any number of callers. Only one goroutine at a
// time may call get(). Waiting parks the goroutine, or blocks the thread; nothing else parks. No allocation
// in steady state apart from the result's own needs: states are recycled (sync/detail/block_pool.h). Unlike
// std::future, the destructor never waits.
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/block_pool.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/detail/member.h>

#include <atomic>
#include <concepts>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tuza {

class Context;

namespace rt {

template <class F, class... Args>
auto start_async(const GoOptions& options, const std::source_location& where, F&& function, Args&&... args);

// The part of a shared state that does not depend on the result's type.
class FutureCore : public FromBlockPool {
 public:
  Event done;
  // Written before `done` fires, read after.
  std::exception_ptr error;

  void wait();
  [[nodiscard]] Result<void> wait(const ::tuza::Context& ctx);  // returns the cause if ctx ends first
  void rethrow_error() const {
    if (error != nullptr) std::rethrow_exception(error);
  }
  // Called once by each of the two sides. True for the last.
  [[nodiscard]] bool drop() { return sides_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  void break_promise();

 private:
  std::atomic<std::uint32_t> sides_{2};
};

template <class T>
struct FutureState final : FutureCore {
  using Reference = T&;
  std::optional<T> value;  // written and read like FutureCore::error

  Reference get() {
    rethrow_error();
    return *value;
  }
  T take() {
    rethrow_error();
    return std::move(*value);
  }
  template <class F>
  void run(F& function) {
    error = catch_exception([&] { value.emplace(std::invoke(std::move(function))); });
  }
};

template <>
struct FutureState<void> final : FutureCore {
  using Reference = void;
  void get() const { rethrow_error(); }
  void take() const { rethrow_error(); }
  template <class F>
  void run(F& function) {
    error = catch_exception([&] { std::invoke(std::move(function)); });
  }
};

// The producing side. If it is destroyed without a result, it breaks the promise.
template <class T>
class FutureMaker {
 public:
  explicit FutureMaker(FutureState<T>* state) : state_(state) {}
  FutureMaker(FutureMaker&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  FutureMaker& operator=(FutureMaker&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~FutureMaker() {
    if (state_ != nullptr) publish(false);
  }
  [[nodiscard]] FutureState<T>* state() const { return state_; }
  // Publishes the result that is in the state.
  void finish() { publish(true); }
  // run() makes the result; ended() publishes it, or that there is none because goexit() has left run(). The maker must
  // not move in between.
  template <class F>
  void run(F& function) {
    state_->run(function);
    ran_ = true;
  }
  void ended() { publish(ran_); }

 private:
  void publish(bool has_result) {
    if (has_result) {
      state_->done.fire();
    } else {
      state_->break_promise();
    }
    if (state_->drop()) delete state_;
    state_ = nullptr;
  }

  FutureState<T>* state_;
  bool ran_ = false;
};

// Aborts on misuse, in every build.
[[noreturn, gnu::cold]] void future_is_empty();
[[noreturn, gnu::cold]] void promise_is_empty();

}  // namespace rt

template <class T>
class [[nodiscard]] Future {
  static_assert(!std::is_reference_v<T>, "a Future of a pointer or of std::reference_wrapper instead");
  using State = rt::FutureState<T>;

 public:
  Future() = default;
  Future(Future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Future& operator=(Future&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Future() {
    if (state_ != nullptr && state_->drop()) delete state_;
  }

  // False: default-constructed, moved from, or the result was moved out. All calls below except valid()
  // abort then.
  [[nodiscard]] bool valid() const { return state_ != nullptr; }
  // Whether the result, or an exception, is set: get() will not wait.
  [[nodiscard]] bool ready() const { return state().done.happened(); }

  // Waits until the result is ready. Parks.
  void wait() const { state().wait(); }
  // The same, but returns ctx.cause() if the context ends first. The Future stays as it is.
  [[nodiscard]] Result<void> wait(const Context& ctx) const { return state().wait(ctx); }

  // Waits, then returns a reference to the result, which stays in the Future, or rethrows its exception. May
  // be called again. Parks.
  typename State::Reference get() & {
    state().wait();
    return state().get();
  }
  // Waits, then moves the result out, or rethrows its exception. The Future is empty afterwards. Parks.
  T get() && {
    const Future last(std::move(*this));
    last.state().wait();
    return last.state().take();
  }
  // The same, but if the context ends first, returns ctx.cause() and the Future stays as it is.
  [[nodiscard]] Result<T> get(const Context& ctx) && {
    if (Result<void> waited = wait(ctx); !waited) return std::unexpected(std::move(waited.error()));
    if constexpr (std::is_void_v<T>) {
      std::move(*this).get();
      return {};
    } else {
      return std::move(*this).get();
    }
  }

  // For select: the event fires when the result is ready. Valid as long as this Future has its result.
  [[nodiscard]] rt::Event& event() const { return state().done; }

 private:
  template <class>
  friend class Promise;
  template <class F, class... Args>
  friend auto rt::start_async(const GoOptions& options, const std::source_location& where, F&& function,
                              Args&&... args);
  explicit Future(State* state) : state_(state) {}
  [[nodiscard]] State& state() const {
    if (state_ == nullptr) [[unlikely]]
      rt::future_is_empty();
    return *state_;
  }

  State* state_ = nullptr;  // this Future is one of the state's two sides
};

// The producing side, for code that sets the result itself. Call either set_value() or set_exception(),
// once: a second call aborts.
template <class T>
class Promise {
 public:
  Promise() : Promise(new rt::FutureState<T>) {}

  // Callable once; aborts the second time.
  Future<T> future() {
    if (!future_.valid()) rt::promise_is_empty();
    return std::move(future_);
  }
  template <class... Args>
  void set_value(Args&&... args) {
    rt::FutureState<T>& state = this->state();
    if constexpr (std::is_void_v<T>) {
      static_assert(sizeof...(args) == 0);
      (void)state;
    } else {
      state.value.emplace(std::forward<Args>(args)...);  // if this throws, the promise is unchanged
    }
    maker_.finish();
  }
  void set_exception(std::exception_ptr error) {
    state().error = std::move(error);
    maker_.finish();
  }

 private:
  explicit Promise(rt::FutureState<T>* state) : maker_(state), future_(state) {}
  rt::FutureState<T>& state() {
    if (maker_.state() == nullptr) rt::promise_is_empty();
    return *maker_.state();
  }

  rt::FutureMaker<T> maker_;
  Future<T> future_;
};

namespace rt {
template <class F, class... Args>
auto start_async(const GoOptions& options, const std::source_location& where, F&& function, Args&&... args) {
  if constexpr (fits_goroutine<F, Args...>()) {
    using Call = BoundCallOf<F, Args...>;
    using T = std::invoke_result_t<Call>;
    auto* const state = new FutureState<T>;
    Future<T> future(state);
    go(
        options,
        [maker = FutureMaker<T>(state),
         call = Call(std::in_place, std::forward<F>(function), std::forward<Args>(args)...)]() mutable {
          const MemberEnd<FutureMaker<T>, &FutureMaker<T>::ended> member(maker);
          Call mine(std::move(call));  // destroyed before the result is visible
          maker.run(mine);
        },
        where);
    return future;
  }
}
}  // namespace rt

// Runs `function` in a goroutine of its own, with copies of `args` if there are any, as go() does; the Future receives
// its result or exception. Does not park. With arguments, dumps show async() itself as the place of the call.
template <class F>
auto async(const GoOptions& options, F&& function,
           const std::source_location& where = std::source_location::current()) {
  return rt::start_async(options, where, std::forward<F>(function));
}
template <class F, class... Args>
  requires rt::GoroutineArguments<Args...>
auto async(const GoOptions& options, F&& function, Args&&... args) {
  return rt::start_async(options, std::source_location::current(), std::forward<F>(function),
                         std::forward<Args>(args)...);
}

template <class F>
auto async(F&& function, const std::source_location& where = std::source_location::current()) {
  return rt::start_async(GoOptions{}, where, std::forward<F>(function));
}
template <class F, class... Args>
  requires(!std::same_as<std::remove_cvref_t<F>, GoOptions>) && rt::GoroutineArguments<Args...>
auto async(F&& function, Args&&... args) {
  return rt::start_async(GoOptions{}, std::source_location::current(), std::forward<F>(function),
                         std::forward<Args>(args)...);
}

}  // namespace tuza
