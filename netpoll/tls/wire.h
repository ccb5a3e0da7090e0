// The ciphertext path between a socket and OpenSSL: the BIO that OpenSSL uses, and the buffers behind it.
//
//     socket --read--> in --BIO--> OpenSSL --BIO--> out --write--> socket
//
// OpenSSL reads and writes memory; the system calls are made outside it. A flight that fits into a buffer
// therefore costs one system call, whatever its number of records, and the goroutine never parks inside
// OpenSSL. Buffers are taken from a cache and held only while they contain data: an idle connection has none.
//
// Thread-unsafe: guarded by the lock of the connection's SSL object.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/tls/openssl.h>
#include <tuza/sched/rt/memory/per_p_cache.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tuza::net::tls {

struct Buffer : rt::CacheNode {
  // Two records of the largest size, and their overhead.
  static constexpr std::size_t kBytes = 33 << 10;
  static Buffer* take();
  static void give_back(Buffer* buffer);
  std::array<std::byte, kBytes> bytes;
};

// A byte queue whose buffer exists only while the queue is not empty.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { drop(); }

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::span<std::byte> unread() const {
    return empty() ? std::span<std::byte>{} : std::span(buffer_->bytes).subspan(begin_, end_ - begin_);
  }
  [[nodiscard]] std::size_t room() const { return Buffer::kBytes - end_; }
  // False if there is no room; nothing is appended then. Unread bytes do not move.
  bool append(std::span<const std::byte> data);
  void consume(std::size_t n) {
    begin_ += static_cast<std::uint32_t>(n);
    if (empty()) drop();
  }
  // Takes over `buffer`, which holds `n` bytes. The queue must be empty.
  void adopt(Buffer* buffer, std::size_t n);
  void drop();

 private:
  Buffer* buffer_ = nullptr;
  std::uint32_t begin_ = 0, end_ = 0;
};

struct Wire {
  Queue in, out;
  // A BIO that uses this object for both directions of one SSL object. Null: no memory.
  BIO* make_bio();
};

// A reader's buffer while it waits for the socket.
class Refill final : public LazyBuffer {
 public:
  Refill() = default;
  Refill(const Refill&) = delete;
  Refill& operator=(const Refill&) = delete;
  ~Refill() { give_back(); }
  std::span<std::byte> take() override;
  void give_back() override;
  void filled(std::size_t n) { bytes_ = n; }
  [[nodiscard]] bool has_bytes() const { return bytes_ > 0; }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return bytes_ == 0 ? std::span<const std::byte>() : std::span(buffer_->bytes).first(bytes_);
  }
  // Moves the bytes to `in`, which must be empty.
  void move_into(Queue& in) {
    if (bytes_ > 0) in.adopt(std::exchange(buffer_, nullptr), std::exchange(bytes_, 0));
  }

 private:
  Buffer* buffer_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tuza::net::tls
