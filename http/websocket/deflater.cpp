#include <tuza/http/websocket/deflater.h>

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace tuza::http::websocket {

struct Deflater::Stream {
  Stream(int window_bits, int level) {
    constexpr int kMemoryLevel = 6;  // 32 KiB
    if (deflateInit2(&z, level, Z_DEFLATED, -window_bits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { deflateEnd(&z); }
  z_stream z{};
};

Deflater::Deflater(int window_bits, bool takeover, int level)
    : window_bits_(window_bits), takeover_(takeover), level_(level) {}
Deflater::~Deflater() = default;

Deflater::Progress Deflater::feed(std::string_view& in, std::span<char> out) {
  if (stream_ == nullptr) stream_ = std::make_unique<Stream>(window_bits_, level_);
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  z_stream& z = stream_->z;
  const std::size_t given = std::min(in.size(), kMost);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  z.avail_in = static_cast<uInt>(given);
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  (void)deflate(&z, given == in.size() ? Z_SYNC_FLUSH : Z_NO_FLUSH);
  in.remove_prefix(given - z.avail_in);
  const bool done = in.empty() && z.avail_out > 0;
  if (done && !takeover_) deflateReset(&z);
  return {.produced = out.size() - z.avail_out, .done = done};
}

}  // namespace tuza::http::websocket
