// The bytes of a message that does not lie in the input as a whole. Its memory grows with what has arrived, never with
// what a frame's head announces, never beyond a limit, and within what all messages of a server may take together.
//
// Thread-unsafe.
#pragma once

#include <tuza/http/serve/body_budget.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace tuza::http::websocket {

class Gather {
 public:
  // Up to this size nothing is taken from the budget.
  static constexpr std::size_t kUncountedBytes = 16 << 10;

  // `budget`: null for no limit.
  explicit Gather(BodyBudget* budget = nullptr) : budget_(budget) {}
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;
  ~Gather() { count(0); }

  [[nodiscard]] std::string_view text() const { return {data_.get(), size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Room for more: at least one byte and at most `wanted`; not initialised. `bytes_max`: of the whole; size() is less.
  // Empty: the budget is used up. Throws std::bad_alloc.
  [[nodiscard]] std::span<char> room(std::size_t wanted, std::size_t bytes_max) {
    const std::size_t free = capacity_ - size_;
    if (free < std::min(wanted, kStepBytes / 4) && capacity_ < bytes_max && !grow(wanted, bytes_max) &&
        free == 0) {
      return {};
    }
    return {data_.get() + size_, std::min({wanted, capacity_ - size_, bytes_max - size_})};
  }
  // So many bytes of that room are now used; returns them.
  std::span<char> filled(std::size_t bytes) {
    const std::span<char> added(data_.get() + size_, bytes);
    size_ += bytes;
    return added;
  }
  // Forgets the bytes, and gives back memory that small messages do not need.
  void clear() {
    size_ = 0;
    if (capacity_ <= kKeptBytes) return;
    data_.reset();
    capacity_ = 0;
    count(0);
  }

 private:
  static constexpr std::size_t kKeptBytes = 4 << 10;
  static constexpr std::size_t kStepBytes = 16 << 10;

  [[nodiscard]] bool grow(std::size_t wanted, std::size_t bytes_max) {
    const std::size_t step = std::max(std::min(wanted, kStepBytes), std::min(size_, bytes_max));
    const std::size_t capacity = std::min(bytes_max, size_ + std::max<std::size_t>(step, 512));
    if (!count(capacity)) return false;
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = capacity;
    return true;
  }

  // Takes from the budget, or gives back, what a capacity counts.
  bool count(std::size_t capacity) {
    if (budget_ == nullptr) return true;
    const std::size_t counted = capacity <= kUncountedBytes ? 0 : capacity;
    if (counted > counted_ && !budget_->try_take(counted - counted_)) return false;
    if (counted < counted_) budget_->give_back(counted_ - counted);
    counted_ = counted;
    return true;
  }

  BodyBudget* const budget_;
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0, capacity_ = 0;
  std::size_t counted_ = 0;  // of the budget
};

}  // namespace tuza::http::websocket
