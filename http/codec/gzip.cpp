// gzip (RFC 1952) by zlib.
#include <tuza/http/codec/codec.h>

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

namespace tuza::http {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // 32 KiB; 16: gzip's frame instead of zlib's
constexpr int kGzipMemoryLevel = 8;       // zlib's default: 256 KiB in all
constexpr int kGzipLevel = 6;

// zlib counts in unsigned int, and takes its input without const.
void give(z_stream& stream, std::string_view in, std::span<char> out) {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  stream.avail_in = static_cast<uInt>(std::min(in.size(), kMost));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(std::min(out.size(), kMost));
}
void take_consumed(const z_stream& stream, std::string_view& in) {
  in.remove_prefix(static_cast<std::size_t>(reinterpret_cast<const char*>(stream.next_in) - in.data()));
}
std::size_t produced(const z_stream& stream, std::span<char> out) {
  return static_cast<std::size_t>(reinterpret_cast<char*>(stream.next_out) - out.data());
}

class GzipEncoder final : public Encoder {
 public:
  explicit GzipEncoder(int level) {
    const int error = deflateInit2(&stream_, level == 0 ? kGzipLevel : level, Z_DEFLATED, kGzipWindowBits,
                                   kGzipMemoryLevel, Z_DEFAULT_STRATEGY);
    if (error == Z_STREAM_ERROR) throw std::invalid_argument("gzip has the levels 1 to 9");
    if (error != Z_OK) throw std::bad_alloc();
  }
  ~GzipEncoder() override { deflateEnd(&stream_); }

  void reset() override { deflateReset(&stream_); }

  Progress encode(std::string_view& in, std::span<char> out, Step step) override {
    give(stream_, in, out);
    const bool all = stream_.avail_in == in.size();
    const int flush = !all                   ? Z_NO_FLUSH
                      : step == Step::kFlush ? Z_SYNC_FLUSH
                      : step == Step::kEnd   ? Z_FINISH
                                             : Z_NO_FLUSH;
    const int result = deflate(&stream_, flush);
    take_consumed(stream_, in);
    const bool done = step == Step::kEnd ? result == Z_STREAM_END : in.empty() && stream_.avail_out > 0;
    return {.produced = produced(stream_, out), .done = done};
  }

 private:
  z_stream stream_{};
};

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() {
    if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  Progress decode(std::string_view& in, std::span<char> out) override {
    if (at_end_) {
      if (in.empty()) return {.produced = 0, .state = State::kEnd};
      inflateReset(&stream_);
      at_end_ = false;
    }
    give(stream_, in, out);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    take_consumed(stream_, in);
    at_end_ = result == Z_STREAM_END;
    const bool goes_on = result == Z_OK || result == Z_BUF_ERROR;
    return {.produced = produced(stream_, out),
            .state = at_end_   ? State::kEnd
                     : goes_on ? State::kMore
                               : State::kMalformed};
  }

 private:
  z_stream stream_{};
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<Encoder> make_gzip_encoder(int level) { return std::make_unique<GzipEncoder>(level); }
std::unique_ptr<Decoder> make_gzip_decoder() { return std::make_unique<GzipDecoder>(); }

}  // namespace tuza::http
