// zstd (RFC 8878) by libzstd.
#include <tuza/http/codec/codec.h>

#include <zstd.h>

#include <new>
#include <stdexcept>

namespace tuza::http {
namespace {

constexpr int kZstdLevel = 3;
constexpr int kZstdWindowBits = 18;
constexpr int kZstdDecoderWindowBits = 23;  // RFC 9659: the window of the content coding is 8 MiB at most

class ZstdEncoder final : public Encoder {
 public:
  explicit ZstdEncoder(int level) : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    const int wanted = level == 0 ? kZstdLevel : level;
    if (wanted < 1 || wanted > ZSTD_maxCLevel()) {
      ZSTD_freeCCtx(context_);
      throw std::invalid_argument("zstd has the levels 1 to 22");
    }
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, wanted);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_windowLog, kZstdWindowBits);
  }
  ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }

  void reset() override { ZSTD_CCtx_reset(context_, ZSTD_reset_session_only); }

  Progress encode(std::string_view& in, std::span<char> out, Step step) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const ZSTD_EndDirective directive = step == Step::kMore    ? ZSTD_e_continue
                                        : step == Step::kFlush ? ZSTD_e_flush
                                                               : ZSTD_e_end;
    const std::size_t left = ZSTD_compressStream2(context_, &output, &input, directive);
    if (ZSTD_isError(left)) throw std::bad_alloc();
    in.remove_prefix(input.pos);
    const bool done = step == Step::kMore ? in.empty() && output.pos < output.size : left == 0;
    return {.produced = output.pos, .done = done};
  }

 private:
  ZSTD_CCtx* const context_;
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kZstdDecoderWindowBits);
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }

  Progress decode(std::string_view& in, std::span<char> out) override {
    if (at_end_ && in.empty()) return {.produced = 0, .state = State::kEnd};
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context_, &output, &input);
    if (ZSTD_isError(left)) return {.produced = 0, .state = State::kMalformed};
    in.remove_prefix(input.pos);
    at_end_ = left == 0;
    return {.produced = output.pos, .state = at_end_ ? State::kEnd : State::kMore};
  }

 private:
  ZSTD_DCtx* const context_;
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<Encoder> make_zstd_encoder(int level) { return std::make_unique<ZstdEncoder>(level); }
std::unique_ptr<Decoder> make_zstd_decoder() { return std::make_unique<ZstdDecoder>(); }

}  // namespace tuza::http
