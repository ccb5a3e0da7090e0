// br (RFC 7932) by libbrotli.
#include <tuza/http/codec/codec.h>

#include <brotli/decode.h>
#include <brotli/encode.h>

#include <new>
#include <stdexcept>

namespace tuza::http {
namespace {

constexpr int kBrotliLevel = 4;
constexpr std::uint32_t kBrotliWindowBits = 18;

// libbrotli can not begin a second stream with the same encoder.
class BrotliEncoder final : public Encoder {
 public:
  explicit BrotliEncoder(int level) : level_(level == 0 ? kBrotliLevel : level) {
    if (level_ < 1 || level_ > BROTLI_MAX_QUALITY) throw std::invalid_argument("br has the levels 1 to 11");
    make();
  }
  ~BrotliEncoder() override { BrotliEncoderDestroyInstance(state_); }

  void reset() override {
    if (!used_) return;
    BrotliEncoderDestroyInstance(state_);
    state_ = nullptr;
    make();
  }

  Progress encode(std::string_view& in, std::span<char> out, Step step) override {
    used_ = true;
    std::size_t in_left = in.size(), out_left = out.size();
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data());
    const BrotliEncoderOperation operation = step == Step::kMore    ? BROTLI_OPERATION_PROCESS
                                             : step == Step::kFlush ? BROTLI_OPERATION_FLUSH
                                                                    : BROTLI_OPERATION_FINISH;
    if (!BrotliEncoderCompressStream(state_, operation, &in_left, &next_in, &out_left, &next_out, nullptr)) {
      throw std::bad_alloc();
    }
    in.remove_prefix(in.size() - in_left);
    const bool done = step == Step::kEnd ? BrotliEncoderIsFinished(state_) != 0
                                         : in.empty() && BrotliEncoderHasMoreOutput(state_) == 0;
    return {.produced = out.size() - out_left, .done = done};
  }

 private:
  void make() {
    state_ = BrotliEncoderCreateInstance(nullptr, nullptr, nullptr);
    if (state_ == nullptr) throw std::bad_alloc();
    BrotliEncoderSetParameter(state_, BROTLI_PARAM_QUALITY, static_cast<std::uint32_t>(level_));
    BrotliEncoderSetParameter(state_, BROTLI_PARAM_LGWIN, kBrotliWindowBits);
    used_ = false;
  }

  const int level_;
  BrotliEncoderState* state_ = nullptr;
  bool used_ = false;
};

class BrotliDecoder final : public Decoder {
 public:
  BrotliDecoder() : state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (state_ == nullptr) throw std::bad_alloc();
  }
  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }

  Progress decode(std::string_view& in, std::span<char> out) override {
    if (BrotliDecoderIsFinished(state_)) {
      return {.produced = 0, .state = in.empty() ? State::kEnd : State::kMalformed};
    }
    std::size_t in_left = in.size(), out_left = out.size();
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data());
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state_, &in_left, &next_in, &out_left, &next_out, nullptr);
    in.remove_prefix(in.size() - in_left);
    return {.produced = out.size() - out_left,
            .state = result == BROTLI_DECODER_RESULT_ERROR     ? State::kMalformed
                     : result == BROTLI_DECODER_RESULT_SUCCESS ? State::kEnd
                                                               : State::kMore};
  }

 private:
  BrotliDecoderState* const state_;
};

}  // namespace

std::unique_ptr<Encoder> make_brotli_encoder(int level) { return std::make_unique<BrotliEncoder>(level); }
std::unique_ptr<Decoder> make_brotli_decoder() { return std::make_unique<BrotliDecoder>(); }

}  // namespace tuza::http
