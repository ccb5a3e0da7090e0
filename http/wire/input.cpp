#include <tuza/http/wire/input.h>

#include <algorithm>
#include <utility>

namespace tuza::http {

void Input::make_room() {
  const std::size_t from = pinned_ ? begin_ : keep_;
  const std::size_t to = pinned_ ? pinned_end_ : 0;
  const std::size_t wanted = end_ - from;
  // Move the bytes over the consumed ones, if that gives enough room.
  if (from > to && to + wanted <= capacity_ / 2) {
    std::memmove(data_ + to, data_ + from, wanted);
    if (!pinned_) keep_ = 0;
    begin_ -= from - to;
    end_ -= from - to;
  } else if (pinned_) {
    leave_pinned_behind();
  } else {
    grow();
  }
}

void Input::grow() {
  auto larger = std::make_unique_for_overwrite<char[]>(capacity_ * 2);
  std::memcpy(larger.get(), data_ + keep_, end_ - keep_);
  begin_ -= keep_;
  end_ -= keep_;
  keep_ = 0;
  capacity_ *= 2;
  large_ = std::move(larger);
  data_ = large_.get();
}

void Input::leave_pinned_behind() {
  const std::size_t unread_bytes = end_ - begin_;
  const std::size_t capacity = std::max(2 * kInlineBytes, 2 * unread_bytes);
  auto fresh = std::make_unique_for_overwrite<char[]>(capacity);
  std::memcpy(fresh.get(), data_ + begin_, unread_bytes);
  if (large_ != nullptr) retired_.push_back(std::move(large_));
  large_ = std::move(fresh);
  data_ = large_.get();
  capacity_ = capacity;
  keep_ = begin_ = pinned_end_ = 0;
  end_ = unread_bytes;
}

}  // namespace tuza::http
