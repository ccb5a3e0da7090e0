#include <tuza/netpoll/buf_writer.h>

#include <cstring>

namespace tuza::net {

Result<void> BufWriter::write(std::span<const std::byte> data) {
  Result<void> written = write_(sink_, ctx_, data);
  if (!written) error_ = written.error();
  return written;
}

Result<void> BufWriter::flush() {
  if (error_) return std::unexpected(*error_);
  if (used_ == 0) return {};
  return write({buffer_.get(), std::exchange(used_, 0)});
}

Result<void> BufWriter::write_all(std::span<const std::byte> data) {
  if (error_) return std::unexpected(*error_);
  if (data.size() > capacity_ - used_) {
    if (Result<void> flushed = flush(); !flushed) return flushed;
    if (data.size() > capacity_) return write(data);
  }
  if (data.empty()) return {};
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  std::memcpy(buffer_.get() + used_, data.data(), data.size());
  used_ += data.size();
  return {};
}

}  // namespace tuza::net
