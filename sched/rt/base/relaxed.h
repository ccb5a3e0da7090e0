// A field that one owner writes and other threads read: for reports, statistics, hints.
//
// The owner uses it like a plain variable. Other threads see a value that it had, untorn, but without any order
// relative to other fields. Costs no more than a plain variable.
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
  // For the owner only: not atomic.
  Relaxed& operator+=(T value) { return *this = static_cast<T>(*this + value); }
  Relaxed& operator++() { return *this += 1; }

 private:
  std::atomic<T> value_{};
};

// A pointer that its owner changes and other threads follow. They see everything of the object that the owner
// had seen when it stored the pointer.
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
  // For other threads.
  [[nodiscard]] T* follow() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace tuza::rt
