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
// Thread-unsafe.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tuza::http {

class Input {
 public:
  static constexpr std::size_t kInlineBytes = 8 << 10;

  Input() { data_ = inline_.data(); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::string_view unread() const { return {data_ + begin_, end_ - begin_}; }
  void consume(std::size_t n) { begin_ += n; }

  // The beginning of the request in progress.
  [[nodiscard]] char* request() { return data_ + keep_; }
  // Number of bytes of that request consumed so far.
  [[nodiscard]] std::size_t request_bytes() const { return begin_ - keep_; }

  // From now until end_request(), the bytes consumed so far do not move.
  void pin() {
    pinned_ = true;
    pinned_end_ = begin_;
  }
  // Ends the request; the next one begins with the unread bytes.
  void end_request();

  // Room for at least one more byte.
  [[nodiscard]] std::span<std::byte> space();
  void filled(std::size_t n) { end_ += n; }

 private:
  void make_room();
  void grow();
  void leave_pinned_behind();

  char* data_ = nullptr;
  std::size_t capacity_ = kInlineBytes;
  std::size_t keep_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool pinned_ = false;
  std::size_t pinned_end_ = 0;     // while pinned_: bytes before this offset, in this buffer, do not move
  std::unique_ptr<char[]> large_;  // backs data_, unless inline_ does
  std::vector<std::unique_ptr<char[]>> retired_;  // pinned bytes of the request in progress
  std::array<char, kInlineBytes> inline_;
};

inline std::span<std::byte> Input::space() {
  if (end_ == capacity_) make_room();
  return std::as_writable_bytes(std::span(data_ + end_, capacity_ - end_));
}

inline void Input::end_request() {
  pinned_ = false;
  keep_ = begin_;
  if (!retired_.empty()) retired_.clear();
  if (!empty()) return;
  keep_ = begin_ = end_ = 0;
  if (large_ != nullptr) {
    large_.reset();
    data_ = inline_.data();
    capacity_ = kInlineBytes;
  }
}

}  // namespace tuza::http
