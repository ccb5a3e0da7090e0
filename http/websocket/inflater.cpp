#include <tuza/http/websocket/inflater.h>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <span>

namespace tuza::http::websocket {

struct Inflater::Stream {
  explicit Stream(int window_bits) {
    if (inflateInit2(&z, -window_bits) != Z_OK) throw std::bad_alloc();  // negative: without zlib's frame
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(&z); }
  z_stream z{};
};

Inflater::Inflater(int window_bits, bool takeover) : window_bits_(window_bits), takeover_(takeover) {}
Inflater::~Inflater() = default;

Inflater::Outcome Inflater::feed(std::string_view piece, Gather& out, std::size_t bytes_max) {
  if (stream_ == nullptr) stream_ = std::make_unique<Stream>(window_bits_);
  constexpr std::size_t kPieceMax = std::numeric_limits<uInt>::max();
  z_stream& z = stream_->z;
  std::array<char, 1> beyond;  // one byte more than the limit tells "full" from "too large"
  for (bool more = true; more || !piece.empty();) {
    const bool full = out.size() == bytes_max;
    const std::span<char> room = full ? std::span<char>(beyond) : out.room(std::size_t{32} << 10, bytes_max);
    if (room.empty()) return Outcome::kNoRoom;
    const std::size_t given = std::min(piece.size(), kPieceMax);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    z.avail_in = static_cast<uInt>(given);
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    const int result = inflate(&z, Z_SYNC_FLUSH);
    piece.remove_prefix(given - z.avail_in);
    const std::size_t made = room.size() - z.avail_out;
    if (full && made > 0) return Outcome::kTooLarge;
    if (!full) out.filled(made);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      // RFC 7692 7.2.3.5: behind a block that says it is the last one, others may follow, with the same window. A block may
      // be two bytes, and be nothing but that: what happens here must cost little.
      if (inflateResetKeep(&z) != Z_OK) return Outcome::kMalformed;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Outcome::kMalformed;
    }
    more = z.avail_out == 0;  // there may be output that had no room
  }
  return Outcome::kDone;
}

Inflater::Outcome Inflater::end(Gather& out, std::size_t bytes_max) {
  // 7.2.2: the sender has removed this end of its last block.
  const Outcome outcome = feed({"\x00\x00\xff\xff", 4}, out, bytes_max);
  if (outcome != Outcome::kDone) return outcome;
  constexpr int kBetweenBlocks = 128;
  if ((stream_->z.data_type & kBetweenBlocks) == 0) return Outcome::kMalformed;  // the message was cut off
  if (!takeover_) inflateReset(&stream_->z);
  return outcome;
}

}  // namespace tuza::http::websocket
