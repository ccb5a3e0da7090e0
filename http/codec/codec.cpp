#include <tuza/http/codec/codec.h>

#include <tuza/http/wire/chars.h>

#include <stdexcept>

#ifndef TUZA_HTTP_BROTLI
#define TUZA_HTTP_BROTLI 0
#endif
#ifndef TUZA_HTTP_ZSTD
#define TUZA_HTTP_ZSTD 0
#endif

namespace tuza::http {

std::string_view name(Coding coding) {
  switch (coding) {
    case Coding::kGzip: return "gzip";
    case Coding::kBrotli: return "br";
    case Coding::kZstd: return "zstd";
  }
  return "";
}

std::optional<Coding> coding_named(std::string_view name) {
  if (equals_ignoring_case(name, "gzip") || equals_ignoring_case(name, "x-gzip")) return Coding::kGzip;
  if (TUZA_HTTP_BROTLI && equals_ignoring_case(name, "br")) return Coding::kBrotli;
  if (TUZA_HTTP_ZSTD && equals_ignoring_case(name, "zstd")) return Coding::kZstd;
  return std::nullopt;
}

std::string_view known_codings() {
  if (TUZA_HTTP_BROTLI && TUZA_HTTP_ZSTD) return "gzip, br, zstd";
  if (TUZA_HTTP_BROTLI) return "gzip, br";
  return TUZA_HTTP_ZSTD ? "gzip, zstd" : "gzip";
}

std::unique_ptr<Encoder> make_encoder(Coding coding, int level) {
  switch (coding) {
    case Coding::kGzip: return make_gzip_encoder(level);
#if TUZA_HTTP_BROTLI
    case Coding::kBrotli: return make_brotli_encoder(level);
#endif
#if TUZA_HTTP_ZSTD
    case Coding::kZstd: return make_zstd_encoder(level);
#endif
    default: throw std::invalid_argument("this build lacks the coding " + std::string(name(coding)));
  }
}

std::unique_ptr<Decoder> make_decoder(Coding coding) {
  switch (coding) {
    case Coding::kGzip: return make_gzip_decoder();
#if TUZA_HTTP_BROTLI
    case Coding::kBrotli: return make_brotli_decoder();
#endif
#if TUZA_HTTP_ZSTD
    case Coding::kZstd: return make_zstd_decoder();
#endif
    default: throw std::invalid_argument("this build lacks the coding " + std::string(name(coding)));
  }
}

}  // namespace tuza::http
