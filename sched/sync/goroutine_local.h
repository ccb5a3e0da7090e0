// Public header, part of <tuza/sync.h>.
//
// GoroutineLocal: a variable of which each goroutine has its own value. It replaces thread_local, which
// goroutines must not use because they change threads.
//
//     tuza::GoroutineLocal<Random> random;                      // at namespace scope
//     ...
//     return random->below(6);                                  // made when this goroutine first asks
//
// A goroutine's value is made at its first use, by T() or by the given function. It is destroyed when the
// goroutine ends, by goexit() too, and before a group that the goroutine belongs to (WaitGroup::go(), Scope, ErrorGroup,
// a server's connections) or the Future of async() learns of the end: a value may refer to what outlives that wait. The newest value is
// destroyed first. A destructor may use other goroutine-locals, and may park. Nothing is inherited: a new goroutine begins without values. Data of a
// request belongs in its Context instead. Goroutines that the end of the runtime leaves behind do not
// destroy their values.
//
// Lifetime: values live as long as their goroutine. The variable must outlive its uses, not the values.
//
// Thread-safe: different goroutines share no state in it. Goroutines only: aborts elsewhere. Does not park.
// The first value of a goroutine allocates a table, and each value its own memory. A lookup takes as many
// comparisons as the goroutine has values.
#pragma once

#include <tuza/sched/detail/language.h>  // first
#include <tuza/sched/detail/move_only_function.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace tuza {

namespace rt {

using DestroyLocal = void (*)(void* value);

[[nodiscard]] std::uint64_t new_local_id();
// The calling goroutine's value; null: it has none.
[[nodiscard]] void* find_local(std::uint64_t id);
// Call only if the goroutine has no value for `id`. When this returns, the goroutine owns `value`.
void add_local(std::uint64_t id, void* value, DestroyLocal destroy);
// Destroys the goroutine's value, if it has one.
void remove_local(std::uint64_t id);

}  // namespace rt

template <class T>
class GoroutineLocal {
 public:
  GoroutineLocal() : GoroutineLocal([] { return T(); }) {}
  // Each goroutine that needs a value calls `make`. Its exceptions propagate out of get().
  explicit GoroutineLocal(MoveOnlyFunction<T() const> make) : make_(std::move(make)) {}
  GoroutineLocal(const GoroutineLocal&) = delete;
  GoroutineLocal& operator=(const GoroutineLocal&) = delete;

  // The calling goroutine's value. The reference is valid until the goroutine ends or calls reset().
  [[nodiscard]] T& get() const {
    if (void* const value = rt::find_local(id_); value != nullptr) return static_cast<Holder*>(value)->value;
    return make_value();
  }
  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }

  [[nodiscard]] bool has_value() const { return rt::find_local(id_) != nullptr; }
  // Destroys the calling goroutine's value; the next use makes a new one.
  void reset() const { rt::remove_local(id_); }

 private:
  struct Holder {
    explicit Holder(const MoveOnlyFunction<T() const>& make) : value(make()) {}
    T value;
  };
  [[gnu::noinline]] T& make_value() const {
    auto made = std::make_unique<Holder>(make_);
    rt::add_local(id_, made.get(), [](void* value) { delete static_cast<Holder*>(value); });
    return made.release()->value;
  }

  const std::uint64_t id_ = rt::new_local_id();  // ids are never reused: values may outlive the variable
  const MoveOnlyFunction<T() const> make_;
};

}  // namespace tuza
