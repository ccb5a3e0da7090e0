// Content codings as streams of pieces: gzip by zlib, br by libbrotli, zstd by libzstd. The last two only if the build
// has found their libraries.
//
// Encoders and decoders are thread-unsafe; the functions are thread-safe. Nothing parks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace tuza::http {

enum class Coding : std::uint8_t { kGzip, kBrotli, kZstd };
inline constexpr std::size_t kCodingCount = 3;

// "gzip", "br", "zstd".
[[nodiscard]] std::string_view name(Coding coding);
// Ignores case; "x-gzip" is gzip. nullopt: unknown, or its library is not part of this build.
[[nodiscard]] std::optional<Coding> coding_named(std::string_view name);
// All that this build knows, for an Accept-Encoding field: "gzip, br, zstd".
[[nodiscard]] std::string_view known_codings();

class Encoder {
 public:
  enum class Step : std::uint8_t {
    kMore,
    kFlush,  // what has been consumed can be decoded from what has been produced
    kEnd,    // completes the stream
  };
  struct Progress {
    std::size_t produced = 0;
    bool done = false;  // all of `in` is consumed, and the step is complete; otherwise `out` was too small
  };
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;
  // Begins a new stream.
  virtual void reset() = 0;
  // Removes from `in` what it has consumed.
  virtual Progress encode(std::string_view& in, std::span<char> out, Step step) = 0;
};

class Decoder {
 public:
  enum class State : std::uint8_t {
    kMore,  // the stream goes on
    kEnd,   // the stream is complete
    kMalformed,
  };
  struct Progress {
    std::size_t produced = 0;
    State state = State::kMore;
  };
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;
  // Removes from `in` what it has consumed. Call it again with empty input until it produces nothing. Bytes behind the
  // end are another stream of gzip or zstd (RFC 1952 2.2, RFC 8878 3.1), and malformed otherwise.
  virtual Progress decode(std::string_view& in, std::span<char> out) = 0;
};

// `level`: of the library; 0: fast enough to be used for each response. Throws std::bad_alloc, and std::invalid_argument
// if the library refuses the level. The codings' windows are limited to 32 KiB (gzip), 256 KiB (br, zstd).
[[nodiscard]] std::unique_ptr<Encoder> make_encoder(Coding coding, int level);
// Throws std::bad_alloc. A stream that wants a window above 8 MiB (zstd, RFC 9659) or 16 MiB (br) is malformed.
[[nodiscard]] std::unique_ptr<Decoder> make_decoder(Coding coding);

// What make_encoder() and make_decoder() call; of the libraries that are part of the build.
std::unique_ptr<Encoder> make_gzip_encoder(int level);
std::unique_ptr<Decoder> make_gzip_decoder();
std::unique_ptr<Encoder> make_brotli_encoder(int level);
std::unique_ptr<Decoder> make_brotli_decoder();
std::unique_ptr<Encoder> make_zstd_encoder(int level);
std::unique_ptr<Decoder> make_zstd_decoder();

}  // namespace tuza::http
