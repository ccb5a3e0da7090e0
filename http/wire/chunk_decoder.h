// The chunked transfer coding of a body: RFC 9112 7.1, without leniency.
//
//   size [;name[=value]]... CRLF data CRLF ... 0 CRLF [trailer CRLF]... CRLF
//
// llhttp parses heads, not bodies: it refuses well-formed extensions, and passes malformed ones, bare LFs and folded
// trailers, so that it sees the end of a message at another place than other parsers. Bytes that are not data are counted
// together: they are limited in all, where each byte of data pays back eight.
//
// Thread-unsafe.
#pragma once

#include <tuza/http/wire/parse_error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace tuza::http {

class ChunkDecoder {
 public:
  // The next byte begins a body. More than `overhead_max` bytes that are not data, and that no data has paid for, are an
  // error.
  void begin(std::size_t overhead_max);

  struct Step {
    std::string_view data;  // part of `input`; empty if the step found no data
    std::size_t consumed;   // of `input`, `data` included
    bool complete;          // the end of the message was reached
  };
  // Goes on to the end of the next piece of data, of the message, or of `input`, which must not be empty.
  std::expected<Step, ParseError> feed(std::string_view input);

  // "Name: value", each with CRLF at its end. Valid until begin().
  [[nodiscard]] const std::string& trailers() const { return trailers_; }
  void drop_trailers() { trailers_.clear(); }

 private:
  enum class State : std::uint8_t {
    kSizeFirst,
    kSize,
    kBeforeExtension,
    kNameFirst,
    kName,
    kAfterName,
    kValueFirst,
    kValue,
    kQuoted,
    kEscaped,
    kAfterQuoted,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerFirst,
    kTrailerName,
    kTrailerValue,
    kTrailerLf,
    kLastLf,
    kDone,
    kBad
  };

  State next(char c);
  State in_size(char c);
  State in_extension(char c);
  State behind_size(char c) const;
  State in_trailer(char c);
  State end_trailer();
  [[nodiscard]] const char* complaint(char c) const;

  State state_ = State::kDone;
  std::uint64_t size_ = 0;    // of the chunk; then what is left of it
  std::size_t overhead_ = 0;  // bytes that no data has paid for
  std::size_t overhead_max_ = 0;
  std::string trailers_;
  std::size_t value_begin_ = 0;  // of the trailer in progress
};

}  // namespace tuza::http
