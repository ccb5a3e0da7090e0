// Public header, part of <tuza/sync.h>.
//
// make_chan(): a channel that belongs to all who have a handle to it, as in Go.
//
//     tuza::SharedChan<int> count_to(int n) {
//       auto numbers = tuza::make_chan<int>();
//       tuza::go([numbers, n] {
//         for (int i = 1; i <= n; ++i) numbers.send(i);
//         numbers.close();
//       });
//       return numbers;
//     }
//
//     for (auto& number : count_to(3)) sum += number;
//
// A handle has all operations of a Chan (sched/sync/chan.h), with the same ordering and the same rules, and is
// a channel in the cases of select. Copy it freely, capture it, return it, keep it in containers, also as a
// key of std::map and std::unordered_map. Copies are equal to each other.
//
// Lifetime: the channel is destroyed with its last handle, and the elements in it as well. It is not closed
// by this: a receiver that waits has a handle itself, and needs close() to end. Views (SendChan, RecvChan) and
// cases of select do not keep the channel alive; keep the handle that they come from.
//
// Thread-safe like a std::shared_ptr: the channel without exception, but one handle must not be assigned to
// while others use this very handle. A handle without a channel is nil, like a view without one: its
// operations wait for ever. make_chan() allocates once, and a second time for a buffer.
#pragma once

#include <tuza/sched/sync/chan.h>

#include <compare>
#include <cstddef>
#include <functional>
#include <memory>

namespace tuza {

template <class T>
class SharedChan : public rt::SendEnd<T, SharedChan<T>>, public rt::RecvEnd<T, SharedChan<T>> {
 public:
  SharedChan() = default;

  using rt::SendEnd<T, SharedChan>::len;
  using rt::SendEnd<T, SharedChan>::cap;

  explicit operator bool() const { return chan_ != nullptr; }
  // Handles to the same channel are equal. The order is one for this process only; std::hash serves them as well.
  bool operator==(const SharedChan& other) const { return chan_ == other.chan_; }
  auto operator<=>(const SharedChan& other) const { return chan_ <=> other.chan_; }

  // Views of one end, for functions that take one.
  operator SendChan<T>() const& { return view<SendChan<T>>(); }  // NOLINT: converts like a Chan
  operator RecvChan<T>() const& { return view<RecvChan<T>>(); }  // NOLINT
  operator SendChan<T>() && = delete;                            // the view would outlive its channel
  operator RecvChan<T>() && = delete;

  // For select.
  [[nodiscard]] rt::ChanCore* core() const { return chan_ == nullptr ? nullptr : chan_->core(); }

 private:
  template <class U>
  friend SharedChan<U> make_chan(std::size_t capacity);
  friend struct std::hash<SharedChan>;
  explicit SharedChan(std::shared_ptr<const Chan<T>> chan) : chan_(std::move(chan)) {}
  template <class View>
  [[nodiscard]] View view() const {
    return chan_ == nullptr ? View() : View(*chan_);
  }

  std::shared_ptr<const Chan<T>> chan_;  // null: nil
};

// A new channel with room for `capacity` elements; 0: sender and receiver meet.
template <class T>
[[nodiscard]] SharedChan<T> make_chan(std::size_t capacity = 0) {
  return SharedChan<T>(std::make_shared<const Chan<T>>(capacity));
}

}  // namespace tuza

template <class T>
struct std::hash<tuza::SharedChan<T>> {
  std::size_t operator()(const tuza::SharedChan<T>& chan) const noexcept {
    return std::hash<std::shared_ptr<const tuza::Chan<T>>>()(chan.chan_);
  }
};
