#include <tuza/http/wire/body_reader.h>

#include <algorithm>
#include <cstring>

namespace tuza::http {

void BodyReader::begin_length(std::uint64_t bytes) {
  kind_ = Kind::kLength;
  chunks_ = nullptr;
  slice_ = {};
  remaining_ = bytes;
  complete_ = bytes == 0;
}

void BodyReader::begin_chunks(ChunkDecoder& chunks, std::size_t overhead_max) {
  begin();
  kind_ = Kind::kChunks;
  complete_ = false;
  chunks_ = &chunks;
  chunks.begin(overhead_max);
}

void BodyReader::begin_until_close() {
  begin();
  kind_ = Kind::kClose;
  complete_ = false;
}

std::expected<std::size_t, ParseError> BodyReader::take(Input& input, std::span<std::byte> into) {
  if (complete_) return 0;
  if (kind_ == Kind::kChunks) return take_chunked(input, into);
  const std::span<std::byte> usable = direct(into);
  const std::size_t n = std::min(input.unread().size(), usable.size());
  if (n == 0) return 0;
  std::memcpy(usable.data(), input.unread().data(), n);
  input.consume(n);
  took(n);
  return n;
}

std::expected<std::size_t, ParseError> BodyReader::take_chunked(Input& input, std::span<std::byte> into) {
  while (slice_.empty()) {
    if (input.empty()) return 0;
    const auto step = chunks_->feed(input.unread());
    if (!step) return std::unexpected(step.error());
    slice_ = step->data;
    input.consume(step->consumed);
    if (step->complete) {
      complete_ = true;
      return 0;
    }
  }
  const std::size_t n = std::min(slice_.size(), into.size());
  if (n == 0) return 0;
  std::memcpy(into.data(), slice_.data(), n);
  slice_.remove_prefix(n);
  return n;
}

std::span<std::byte> BodyReader::direct(std::span<std::byte> into) const {
  if (kind_ != Kind::kLength) return into;
  return into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), remaining_)));
}

void BodyReader::took(std::uint64_t n) {
  if (kind_ != Kind::kLength) return;
  remaining_ -= n;
  complete_ = remaining_ == 0;
}

bool BodyReader::end_of_stream() {
  if (kind_ == Kind::kClose) complete_ = true;
  return complete_;
}

}  // namespace tuza::http
