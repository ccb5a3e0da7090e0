// tuza::MoveOnlyFunction: std::move_only_function, or the same for a standard library that has none (libc++).
#pragma once

#include <tuza/sched/detail/language.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace tuza {
namespace detail {

// What both signatures of OwnMoveOnlyFunction share: owns the function object, on the heap. The member functions are those of
// std::move_only_function.
template <bool kConst, class R, class... Args>
class FunctionOwner {
 public:
  FunctionOwner() = default;
  FunctionOwner(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <class F>
    requires(!std::derived_from<std::remove_cvref_t<F>, FunctionOwner> &&
             std::is_invocable_r_v<R, std::conditional_t<kConst, const std::decay_t<F>, std::decay_t<F>>&,
                                   Args...>)
  FunctionOwner(F&& function) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_pointer_v<std::remove_cvref_t<F>> || std::is_member_pointer_v<std::decay_t<F>>) {
      if (function == nullptr) return;
    }
    callee_ = std::make_unique<Of<std::decay_t<F>>>(std::in_place, std::forward<F>(function));
  }
  explicit operator bool() const { return callee_ != nullptr; }
  friend bool operator==(const FunctionOwner& function, std::nullptr_t) { return !function; }

 protected:
  R call(Args... args) const { return callee_->call(std::forward<Args>(args)...); }

 private:
  struct Callee {
    virtual ~Callee() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Of final : Callee {
    template <class G>
    Of(std::in_place_t, G&& from) : function(std::forward<G>(from)) {}
    R call(Args... args) override {
      std::conditional_t<kConst, const F, F>& callable = function;
      if constexpr (std::is_void_v<R>) {
        std::invoke(callable, std::forward<Args>(args)...);
      } else {
        return std::invoke(callable, std::forward<Args>(args)...);
      }
    }
    F function;
  };

  std::unique_ptr<Callee> callee_;
};

template <class Signature>
class OwnMoveOnlyFunction;

template <class R, class... Args>
class OwnMoveOnlyFunction<R(Args...)> : public FunctionOwner<false, R, Args...> {
 public:
  using FunctionOwner<false, R, Args...>::FunctionOwner;
  R operator()(Args... args) { return this->call(std::forward<Args>(args)...); }
};

template <class R, class... Args>
class OwnMoveOnlyFunction<R(Args...) const> : public FunctionOwner<true, R, Args...> {
 public:
  using FunctionOwner<true, R, Args...>::FunctionOwner;
  R operator()(Args... args) const { return this->call(std::forward<Args>(args)...); }
};

}  // namespace detail

#if defined(__cpp_lib_move_only_function)
template <class Signature>
using MoveOnlyFunction = std::move_only_function<Signature>;
#else
template <class Signature>
using MoveOnlyFunction = detail::OwnMoveOnlyFunction<Signature>;
#endif

}  // namespace tuza
