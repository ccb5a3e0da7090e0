// Public header, part of <tuza/tuza.h>.
//
// A value for each P, so that the cores do not contend for one cache line: counters, above all.
//
//     tuza::PerP<std::atomic<std::uint64_t>> requests;
//     requests.mine().fetch_add(1, std::memory_order_relaxed);                                // anywhere
//     std::uint64_t sum = 0;
//     for (const auto& part : requests) sum += part.load(std::memory_order_relaxed);          // now and then
//
// The goroutine may have lost its P before it uses what mine() returned, goroutines without a P and other threads share a
// value, and so do Ps beyond kParts: T must be safe to use from several threads. What is saved is only the traffic between
// caches.
//
// Thread-safe, as T is. Nothing parks.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <array>
#include <cstddef>

namespace tuza {

namespace detail {
// The number of the caller's P; 0 if it has none.
[[nodiscard]] std::size_t current_p();
}  // namespace detail

template <class T>
class PerP {
  struct alignas(64) Part {
    T value{};
  };

 public:
  static constexpr std::size_t kParts = 16;

  [[nodiscard]] T& mine() { return parts_[detail::current_p() % kParts].value; }

  class Iterator {
   public:
    explicit Iterator(const Part* at) : at_(at) {}
    const T& operator*() const { return at_->value; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Part* at_;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(parts_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(parts_.data() + kParts); }

 private:
  std::array<Part, kParts> parts_;
};

}  // namespace tuza
