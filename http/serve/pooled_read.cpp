#include <tuza/http/serve/pooled_read.h>

#include <tuza/http/wire/input.h>
#include <tuza/sched/rt/memory/per_p_cache.h>

#include <array>
#include <utility>

namespace tuza::http {

struct PooledRead::Buffer : rt::CacheNode {
  std::array<std::byte, Input::kReadBytes> bytes;
};

namespace {

rt::PerPCache& cache() {
  static rt::PerPCache instance;
  return instance;
}

}  // namespace

std::span<std::byte> PooledRead::take() {
  if (buffer_ == nullptr) {
    rt::CacheNode* const node = cache().take();
    buffer_ = node != nullptr ? static_cast<Buffer*>(node) : new Buffer;
  }
  return buffer_->bytes;
}

void PooledRead::give_back() {
  if (buffer_ == nullptr) return;
  Buffer* const buffer = std::exchange(buffer_, nullptr);
  if (!cache().put(buffer) && !cache().put_surplus(buffer)) delete buffer;
}

std::span<const std::byte> PooledRead::bytes(std::size_t n) const {
  return std::span(buffer_->bytes).first(n);
}

}  // namespace tuza::http
