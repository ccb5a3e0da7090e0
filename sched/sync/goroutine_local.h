// Public header, part of <tuza/sync.h>.
//
// GoroutineLocal: a variable of which each goroutine has its own, as each thread has of a thread_local (which
// goroutines must not use: they change threads).
//
//     tuza::GoroutineLocal<Random> random;                      // at namespace scope
//     ...
//     return random->below(6);                                  // made when this goroutine first asks
//
// A goroutine's value is made at its first use, by T() or by the function given, and destroyed when it ends,
// by goexit() too; the youngest first. A destructor may use other goroutine-locals, and may park. Nothing is
// inherited: a goroutine that is started begins without values. What belongs to a request goes into its
// Context instead. Goroutines that the end of the runtime leaves behind do not destroy theirs.
//
// Lifetime: values live as long as their goroutine. The variable must outlive its use, not the values.
//
// Thread-safe: different goroutines never meet in it. Goroutines only: aborts elsewhere. Does not park. The
// first value of a goroutine allocates a table, each value its own memory; finding one takes as many
// comparisons as the goroutine has values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace tuza {

namespace rt {

using DestroyLocal = void (*)(void* value);

[[nodiscard]] std::uint64_t new_local_id();
// Of the calling goroutine; null: it has none.
[[nodiscard]] void* find_local(std::uint64_t id);
// It has none yet. `value` belongs to the goroutine when this returns.
void add_local(std::uint64_t id, void* value, DestroyLocal destroy);
// Destroys the one it has, if any.
void remove_local(std::uint64_t id);
// All of them: the goroutine ends. What destructors make anew goes as well.
void destroy_locals() noexcept;

}  // namespace rt

template <class T>
class GoroutineLocal {
 public:
  GoroutineLocal() : GoroutineLocal([] { return T(); }) {}
  // `make` is called by each goroutine that needs a value. What it throws leaves get().
  explicit GoroutineLocal(std::move_only_function<T() const> make) : make_(std::move(make)) {}
  GoroutineLocal(const GoroutineLocal&) = delete;
  GoroutineLocal& operator=(const GoroutineLocal&) = delete;

  // The calling goroutine's. The reference is good until it ends, or calls reset().
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
    explicit Holder(const std::move_only_function<T() const>& make) : value(make()) {}
    T value;
  };
  [[gnu::noinline]] T& make_value() const {
    auto made = std::make_unique<Holder>(make_);
    rt::add_local(id_, made.get(), [](void* value) { delete static_cast<Holder*>(value); });
    return made.release()->value;
  }

  const std::uint64_t id_ = rt::new_local_id();  // never used again: values may outlive the variable
  const std::move_only_function<T() const> make_;
};

}  // namespace tuza
