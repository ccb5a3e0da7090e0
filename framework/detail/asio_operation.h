// The state of one Asio operation that a goroutine waits for, and the handler that completes the operation. Part of
// framework/asio_bridge.h and framework/boost_asio_bridge.h: `Library` is standalone Asio or Boost's.
//
// The state is on the goroutine's stack: result, error, AsioWait. The handler is a move-only pointer to the state, so
// exactly one handler exists at any time. The handler ends in one of two ways: it is called, or it is destroyed (the
// io_context is destroyed, or the initiation threw before it stored the handler). Either way the handler completes the
// wait, exactly once, as its last access to the state. So the goroutine stays in its call for as long as a handler
// exists, and the stack with the state cannot go away. The goroutine reads what the handler wrote only after the wait,
// never concurrently.
#pragma once

#include <tuza/framework/detail/asio_wait.h>
#include <tuza/framework/use_goroutine.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/result.h>

#include <atomic>
#include <exception>
#include <future>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tuza::detail {

// The type in which a goroutine receives the values that an operation completes with: void, the value, or a tuple.
template <class... Values>
struct AsioValues {
  using Type = std::tuple<Values...>;
};
template <>
struct AsioValues<> {
  using Type = void;
};
template <class Value>
struct AsioValues<Value> {
  using Type = Value;
};

// The part that operations of all signatures have in common. The handler writes it, then the goroutine reads it.
template <class... Values>
class AsioOutcome {
 public:
  using Value = typename AsioValues<Values...>::Type;

  template <class... Args>
  void keep(Args&&... args) noexcept {
    try {
      values_.emplace(std::forward<Args>(args)...);
    } catch (...) {  // copying a value threw: rethrow on the goroutine, not on the thread of the handler
      thrown_ = std::current_exception();
    }
  }
  void keep_exception(std::exception_ptr thrown) noexcept { thrown_ = std::move(thrown); }
  void rethrow_any() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }
  [[nodiscard]] bool abandoned() const { return !values_.has_value(); }
  Value take() {
    if constexpr (sizeof...(Values) == 1) {
      return std::get<0>(std::move(*values_));
    } else if constexpr (sizeof...(Values) > 1) {
      return std::move(*values_);
    }
  }

 private:
  std::optional<std::tuple<Values...>> values_;
  std::exception_ptr thrown_;
};

// Signatures without an error: R(Values...). The call returns the value.
template <class Library, class... Values>
struct AsioSignature : AsioOutcome<Values...> {
  using Return = typename AsioOutcome<Values...>::Value;

  template <class... Args>
  void finish(Args&&... args) noexcept {
    this->keep(std::forward<Args>(args)...);
  }
  Return result(const Context&) {
    this->rethrow_any();
    if (this->abandoned()) throw std::future_error(std::future_errc::broken_promise);
    return this->take();
  }
  static Return ended(const Error& cause) { throw std::system_error(cause.code(), cause.message()); }
};

// R(exception_ptr, Values...). The call returns the value, or rethrows the exception.
template <class Library, class... Values>
struct AsioSignature<Library, std::exception_ptr, Values...> : AsioSignature<Library, Values...> {
  template <class... Args>
  void finish(std::exception_ptr thrown, Args&&... args) noexcept {
    if (thrown != nullptr) return this->keep_exception(std::move(thrown));
    this->keep(std::forward<Args>(args)...);
  }
};

// R(error_code, Values...). The call returns a Result.
template <class Library, class... Values>
struct AsioSignature<Library, typename Library::ErrorCode, Values...> : AsioOutcome<Values...> {
  using Return = Result<typename AsioOutcome<Values...>::Value>;

  template <class... Args>
  void finish(const typename Library::ErrorCode& error, Args&&... args) noexcept {
    error_ = Library::standard_code(error);
    this->keep(std::forward<Args>(args)...);
  }
  Return result(const Context& ctx) {
    this->rethrow_any();
    if (this->abandoned()) return std::unexpected(Error(Errc::kClosed, "asio"));
    if (error_ == std::errc::operation_canceled && ctx.done()) return ended(ctx.cause());
    if (error_) return std::unexpected(Error(error_, "asio"));
    if constexpr (std::is_void_v<typename Return::value_type>) {
      return {};
    } else {
      return this->take();
    }
  }
  static Return ended(Error cause) { return std::unexpected(std::move(cause)); }

 private:
  std::error_code error_;
};

template <class Library, class Signature>
struct AsioOperation;
template <class Library, class R, class... Args>
struct AsioOperation<Library, R(Args...)> : AsioSignature<Library, std::decay_t<Args>...> {
  AsioWait wait{Library::inside_handler()};
  // True: the operation must not be cancelled any more, because the slot of a completed operation may refer to
  // destroyed objects.
  std::atomic<bool> over{false};
};

template <class Library, class Operation>
class AsioHandler {
 public:
  using Slot = typename Library::CancellationSlot;
  AsioHandler(Operation& operation, Slot slot) : operation_(&operation), slot_(slot) {}
  AsioHandler(AsioHandler&& other) noexcept
      : operation_(std::exchange(other.operation_, nullptr)), slot_(other.slot_) {}
  AsioHandler& operator=(AsioHandler&&) = delete;
  ~AsioHandler() {
    if (operation_ != nullptr) complete();
  }

  template <class... Args>
  void operator()(Args&&... args) {
    operation_->finish(std::forward<Args>(args)...);
    complete();
  }

  using cancellation_slot_type = Slot;
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

 private:
  void complete() {
    Operation& operation = *std::exchange(operation_, nullptr);
    operation.over.store(true, std::memory_order_release);
    operation.wait.complete();
  }

  Operation* operation_;
  Slot slot_;
};

// Runs the initiation on the goroutine's stack. The initiation returns before anything parks. It runs under NoPreempt
// because it takes locks of the io_context, which the thread of the io_context needs too.
template <class Library, class Operation, class Initiation, class... Args>
std::exception_ptr begin_asio(Operation& operation, typename Library::CancellationSlot slot,
                              Initiation&& initiation, Args&&... args) noexcept {
  const NoPreempt with_locks;
  try {
    std::forward<Initiation>(initiation)(AsioHandler<Library, Operation>(operation, slot),
                                         std::forward<Args>(args)...);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

template <class Library, class Signature, class Initiation, class... Args>
typename AsioOperation<Library, Signature>::Return await_asio(Initiation&& initiation, Args&&... args) {
  AsioOperation<Library, Signature> operation;
  const std::exception_ptr thrown =
      begin_asio<Library>(operation, {}, std::forward<Initiation>(initiation), std::forward<Args>(args)...);
  operation.wait.await();  // even if the initiation threw: the operation may have started before the throw
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return operation.result({});
}

// Cancels the operation. Runs on the executor of the operation, where the operation cannot complete at the same time.
// Like the handler, it is called or destroyed exactly once.
template <class Library, class Operation>
class AsioCancel {
 public:
  AsioCancel(Operation& operation, typename Library::CancellationSignal& signal, AsioWait& done)
      : operation_(operation), signal_(signal), done_(&done) {}
  AsioCancel(AsioCancel&& other) noexcept
      : operation_(other.operation_), signal_(other.signal_), done_(std::exchange(other.done_, nullptr)) {}
  AsioCancel& operator=(AsioCancel&&) = delete;
  ~AsioCancel() {
    if (done_ != nullptr) done_->complete();
  }
  void operator()() {
    if (!operation_.over.load(std::memory_order_acquire)) signal_.emit(Library::kCancelAll);
  }

 private:
  Operation& operation_;
  typename Library::CancellationSignal& signal_;
  AsioWait* done_;
};

// Waits for an operation that has begun. If `ctx` ends first, cancels the operation on its executor, and waits on.
template <class Library, class Operation, class Executor>
void wait_within(const Context& ctx, Operation& operation, typename Library::CancellationSignal& signal,
                 const Executor& executor) {
  if (operation.wait.await(ctx)) return;
  AsioWait done{Library::inside_handler()};
  // If post() fails for lack of memory, the operation can be neither cancelled nor abandoned: noexcept terminates the
  // process.
  [&]() noexcept { Library::post(executor, AsioCancel<Library, Operation>(operation, signal, done)); }();
  done.await();
  operation.wait.await();
}

template <class Library, class Signature, class Initiation, class... Args>
typename AsioOperation<Library, Signature>::Return await_asio_within(const Context& ctx,
                                                                     Initiation&& initiation,
                                                                     Args&&... args) {
  using Operation = AsioOperation<Library, Signature>;
  static_assert(
      requires { initiation.get_executor(); },
      "this operation does not say where it runs, so it cannot be cancelled from outside: "
      "use_goroutine.on(executor, ctx), or without a context");
  if (ctx.done()) return Operation::ended(ctx.cause());
  typename Library::CancellationSignal signal;
  Operation operation;
  const auto executor = initiation.get_executor();
  const std::exception_ptr thrown = begin_asio<Library>(
      operation, signal.slot(), std::forward<Initiation>(initiation), std::forward<Args>(args)...);
  if (thrown != nullptr) {
    operation.wait.await();
    std::rethrow_exception(thrown);
  }
  wait_within<Library>(ctx, operation, signal, executor);
  return operation.result(ctx);
}

// Says that it has ended: when it has been called, or was destroyed without. That is its last access.
class AsioBegun {
 public:
  explicit AsioBegun(AsioWait& wait) : wait_(&wait) {}
  AsioBegun(AsioBegun&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
  AsioBegun& operator=(AsioBegun&&) = delete;
  ~AsioBegun() {
    if (wait_ != nullptr) wait_->complete();
  }

 private:
  AsioWait* wait_;
};

// The initiation, too, runs on the executor. The goroutine waits until it has run, and then for the operation: an
// exception is stored after the handler has gone.
template <class Library, class Signature, class Executor, class Initiation, class... Args>
typename AsioOperation<Library, Signature>::Return await_asio_on(const Executor& executor, const Context& ctx,
                                                                 Initiation&& initiation, Args&&... args) {
  using Operation = AsioOperation<Library, Signature>;
  if (ctx.done()) return Operation::ended(ctx.cause());
  typename Library::CancellationSignal signal;
  Operation operation;
  AsioWait begun{Library::inside_handler()};
  std::exception_ptr thrown;
  auto begin = [guard = AsioBegun(begun), handler = AsioHandler<Library, Operation>(operation, signal.slot()),
                &thrown, &initiation,
                arguments = std::forward_as_tuple(std::forward<Args>(args)...)]() mutable {
    try {
      std::apply(
          [&](auto&&... each) {
            std::forward<Initiation>(initiation)(std::move(handler), std::forward<decltype(each)>(each)...);
          },
          std::move(arguments));
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  [&]() noexcept { Library::post(executor, std::move(begin)); }();
  begun.await();
  if (thrown != nullptr) {
    operation.wait.await();
    std::rethrow_exception(thrown);
  }
  wait_within<Library>(ctx, operation, signal, executor);
  return operation.result(ctx);
}

// What the specialisations of the library's async_result for both tokens have in common.
template <class Library, class Signature>
struct GoroutineResult {
  using return_type = typename AsioOperation<Library, Signature>::Return;

  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, UseGoroutine, Args&&... args) {
    return await_asio<Library, Signature>(std::forward<Initiation>(initiation), std::forward<Args>(args)...);
  }
  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, const UseGoroutineWithin& token, Args&&... args) {
    return await_asio_within<Library, Signature>(token.context(), std::forward<Initiation>(initiation),
                                                 std::forward<Args>(args)...);
  }
  template <class Initiation, class Executor, class... Args>
  static return_type initiate(Initiation&& initiation, const UseGoroutineOn<Executor>& token,
                              Args&&... args) {
    return await_asio_on<Library, Signature>(
        token.executor(), token.context(), std::forward<Initiation>(initiation), std::forward<Args>(args)...);
  }
};

}  // namespace tuza::detail
