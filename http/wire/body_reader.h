// The body of a message, taken out of the bytes behind its head: of known length, in chunks, or up to the end of the
// connection.
//
//   while (reader wants) { take() what has arrived; otherwise read more: straight to the caller, or into the Input }
//
// Thread-unsafe. Never waits: the owner reads.
#pragma once

#include <tuza/http/wire/chunk_decoder.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/input.h>
#include <tuza/http/wire/parse_error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace tuza::http {

class BodyReader {
 public:
  // No body.
  void begin() { *this = BodyReader{}; }
  void begin_length(std::uint64_t bytes);
  // `chunks` is kept, and has the trailers afterwards.
  void begin_chunks(ChunkDecoder& chunks, std::size_t overhead_max);
  void begin_until_close();

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] bool chunked() const { return kind_ == Kind::kChunks; }
  // Of a body with a length; otherwise 0.
  [[nodiscard]] std::uint64_t remaining() const { return remaining_; }

  // Takes what has arrived, as far as `into` has room. 0: complete, or nothing more has arrived. Without room it takes only
  // what delimits chunks, up to their next data.
  std::expected<std::size_t, ParseError> take(Input& input, std::span<std::byte> into);
  // Data of a chunk, which has been taken out of the input.
  [[nodiscard]] bool has_data() const { return !slice_.empty(); }
  // The input is used up. True: the next bytes may be read into the caller's memory, of which this is the usable part, and
  // took() says how many have come. False: they belong into the Input.
  [[nodiscard]] bool reads_directly() const { return kind_ != Kind::kChunks; }
  [[nodiscard]] std::span<std::byte> direct(std::span<std::byte> into) const;
  void took(std::uint64_t n);
  // The connection has ended. False: in the middle of the body.
  [[nodiscard]] bool end_of_stream();

 private:
  enum class Kind : std::uint8_t { kLength, kChunks, kClose };
  std::expected<std::size_t, ParseError> take_chunked(Input& input, std::span<std::byte> into);

  Kind kind_ = Kind::kLength;
  bool complete_ = true;
  std::uint64_t remaining_ = 0;
  ChunkDecoder* chunks_ = nullptr;
  std::string_view slice_;  // decoded data of a chunk, not yet taken
};

}  // namespace tuza::http
