// A read into a buffer that is borrowed while the bytes are there, and not while the reader waits for them:
//
//     PooledRead read;
//     const auto n = net::detail::ConnParts::read(conn, read, &ctx);    // parks
//     if (n && *n > 0) input.append(read.bytes(*n));                    // copies what has come
//
// So a thousand connections that wait for a hundred bytes each do not hold a thousand buffers for the largest read. The
// buffers are cached per P: one after another uses the same memory, which stays in its core's cache.
//
// Thread-unsafe: a local variable of the reader.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>

#include <cstddef>
#include <span>

namespace tuza::http {

class PooledRead final : public net::LazyBuffer {
 public:
  PooledRead() = default;
  ~PooledRead() { give_back(); }
  PooledRead(const PooledRead&) = delete;
  PooledRead& operator=(const PooledRead&) = delete;

  // net::LazyBuffer. Throws std::bad_alloc.
  std::span<std::byte> take() override;
  void give_back() override;

  // What the read has brought, `n` bytes; valid as long as this.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t n) const;

 private:
  struct Buffer;
  Buffer* buffer_ = nullptr;  // null: none is borrowed
};

}  // namespace tuza::http
