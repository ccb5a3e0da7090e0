// The received bytes of a connection that have not been consumed yet.
//
//      data_       keep_          begin_          end_        capacity_
//       | consumed  | request in   | unread        | free      |
//       |           | progress     |               |           |
//
// The bytes from keep_ on belong to the request in progress. While its head is arriving, all of them move
// when the buffer is full: to the front, or to a larger buffer. Once the head is complete, handlers have
// views of it, and the head is pinned: it stays in place until the request has ended, and only unread bytes
// move, to just behind the head or to a new buffer.
//
// The buffer is as large as what has arrived: a request may wait for hours in its handler, beside 10,000 others, and then
// takes what its head takes. Reads therefore go elsewhere (http/serve/pooled_read.h), and append() copies; only who expects
// many bytes reads into space(). A buffer of up to kKeptBytes stays for the next request.
//
// Thread-unsafe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {

class Input {
 public:
  static constexpr std::size_t kReadBytes = 8 << 10;
  static constexpr std::size_t kKeptBytes = 16 << 10;

  Input() = default;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::string_view unread() const { return {data_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t n) { begin_ += n; }

  // The beginning of the request in progress.
  [[nodiscard]] char* request() { return data_.get() + keep_; }
  // Number of bytes of that request consumed so far.
  [[nodiscard]] std::size_t request_bytes() const { return begin_ - keep_; }

  // From now until end_request(), the bytes consumed so far do not move.
  void pin() {
    pinned_ = true;
    pinned_end_ = begin_;
  }
  // Ends the request; the next one begins with the unread bytes.
  void end_request();

  // Throws std::bad_alloc.
  void append(std::span<const std::byte> bytes);
  // Room to read into: half of kReadBytes at least. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> space();
  void filled(std::size_t n) { end_ += n; }
  // Memory that is there already.
  [[nodiscard]] std::span<std::byte> spare() {
    return std::as_writable_bytes(std::span(data_.get() + end_, room()));
  }

  // Gives back a buffer of more than `bytes` of which nothing is needed any more.
  void give_back_above(std::size_t bytes);

 private:
  void make_room(std::size_t bytes);
  void grow(std::size_t bytes);
  void leave_pinned_behind(std::size_t bytes);
  [[nodiscard]] std::size_t room() const { return capacity_ - end_; }

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t keep_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool pinned_ = false;
  std::size_t pinned_end_ = 0;  // while pinned_: bytes before this offset, in this buffer, do not move
  std::vector<std::unique_ptr<char[]>> retired_;  // pinned bytes of the request in progress
};

inline std::span<std::byte> Input::space() {
  if (room() < kReadBytes / 2) make_room(kReadBytes);
  return spare();
}

inline void Input::end_request() {
  pinned_ = false;
  keep_ = begin_;
  if (!retired_.empty()) retired_.clear();
  if (!empty()) return;
  keep_ = begin_ = end_ = 0;
  give_back_above(kKeptBytes);
}

inline void Input::give_back_above(std::size_t bytes) {
  const bool needed = !empty() || (pinned_ ? pinned_end_ > 0 : keep_ < begin_);
  if (capacity_ <= bytes || needed) return;
  data_.reset();
  capacity_ = keep_ = begin_ = end_ = 0;
}

}  // namespace tuza::http
