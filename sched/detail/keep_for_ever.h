// Objects that are never destroyed, because goroutines that tuza::run has left behind may still use them.
#pragma once

#include <atomic>
#include <utility>

namespace tuza {

// Makes one. Thread-safe. They stay reachable, for those who look for leaks.
template <class T, class... Args>
T& keep_for_ever(Args&&... args) {
  struct Kept {
    T object;
    Kept* next;
  };
  static std::atomic<Kept*> all{nullptr};
  auto* const kept = new Kept{T(std::forward<Args>(args)...), nullptr};
  kept->next = all.exchange(kept);
  return kept->object;
}

}  // namespace tuza
