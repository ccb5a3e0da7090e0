#include <tuza/http/wire/input.h>

#include <cstring>

namespace tuza::http {
namespace {

// Sizes of buffers are multiples of this: the next piece of a head often finds room.
constexpr std::size_t kStepBytes = 256;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
}

}  // namespace

void Input::append(std::span<const std::byte> bytes) {
  if (room() < bytes.size()) make_room(bytes.size());
  if (!bytes.empty()) std::memcpy(data_.get() + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

// Room for so many bytes at least. What is copied is paid for: half of the buffer is free afterwards.
void Input::make_room(std::size_t bytes) {
  const std::size_t from = pinned_ ? begin_ : keep_;
  const std::size_t to = pinned_ ? pinned_end_ : 0;
  const std::size_t kept = end_ - from;
  const bool suffices = to + kept <= capacity_ / 2 && to + kept + bytes <= capacity_;
  // Move the bytes over the consumed ones, if that gives enough room.
  if (from > to && suffices) {
    std::memmove(data_.get() + to, data_.get() + from, kept);
    if (!pinned_) keep_ = 0;
    begin_ -= from - to;
    end_ -= from - to;
  } else if (pinned_ && pinned_end_ > 0) {
    leave_pinned_behind(bytes);
  } else {
    grow(bytes);
  }
}

// Nothing of this buffer is pinned.
void Input::grow(std::size_t bytes) {
  const std::size_t from = pinned_ ? begin_ : keep_;
  const std::size_t kept = end_ - from;
  const std::size_t capacity = round_up(2 * kept + bytes);
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (kept > 0) std::memcpy(larger.get(), data_.get() + from, kept);
  begin_ -= from;
  keep_ = 0;
  end_ = kept;
  capacity_ = capacity;
  data_ = std::move(larger);
}

void Input::leave_pinned_behind(std::size_t bytes) {
  const std::size_t kept = end_ - begin_;
  const std::size_t capacity = round_up(2 * kept + bytes);
  auto fresh = std::make_unique_for_overwrite<char[]>(capacity);
  if (kept > 0) std::memcpy(fresh.get(), data_.get() + begin_, kept);
  retired_.push_back(std::move(data_));
  data_ = std::move(fresh);
  capacity_ = capacity;
  keep_ = begin_ = pinned_end_ = 0;
  end_ = kept;
}

}  // namespace tuza::http
