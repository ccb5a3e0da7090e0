// A field with one owner that others may look at: for reports, statistics, guesses.
//
// The owner reads and writes it like a plain variable; anybody else sees some value it had, whole but
// without any order relative to other fields. Costs nothing over a plain variable.
#pragma once

#include <atomic>

namespace tuza::rt {

template <class T>
class Relaxed {
 public:
  Relaxed() = default;
  explicit Relaxed(T value) : value_(value) {}
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return get(); }
  [[nodiscard]] T get() const { return value_.load(std::memory_order_relaxed); }
  T operator->() const { return get(); }
  // Not one step: for the owner.
  Relaxed& operator+=(T value) { return *this = static_cast<T>(*this + value); }
  Relaxed& operator++() { return *this += 1; }

 private:
  std::atomic<T> value_{};
};

// A pointer that its owner changes and other threads follow: what the owner had seen of the object before it
// stored the pointer, they see too.
template <class T>
class Followed {
 public:
  Followed() = default;
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  Followed& operator=(T* value) {
    value_.store(value, std::memory_order_release);
    return *this;
  }
  // For the owner.
  operator T*() const { return get(); }
  [[nodiscard]] T* get() const { return value_.load(std::memory_order_relaxed); }
  T* operator->() const { return get(); }
  // For others.
  [[nodiscard]] T* follow() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace tuza::rt
