#include <tuza/http/wire/chunk_decoder.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <limits>

namespace tuza::http {
namespace {

// Bytes around the data of a chunked body that each byte of data pays for: a chunk of one byte has five around it.
constexpr std::size_t kOverheadPerByte = 8;

// RFC 9110 5.6.3: whitespace that is only there for bad senders, and is to be ignored.
bool is_blank(char c) { return c == ' ' || c == '\t'; }

// VCHAR, obs-text, SP and HTAB: what may stand in a field's value and behind a backslash.
bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

}  // namespace

void ChunkDecoder::begin(std::size_t overhead_max) {
  state_ = State::kSizeFirst;
  size_ = 0;
  overhead_ = 0;
  overhead_max_ = overhead_max;
  trailers_.clear();
}

std::expected<ChunkDecoder::Step, ParseError> ChunkDecoder::feed(std::string_view input) {
  std::size_t at = 0;
  for (; at < input.size() && state_ != State::kDone; ++at) {
    if (state_ == State::kData) {
      const std::string_view data =
          input.substr(at, static_cast<std::size_t>(std::min<std::uint64_t>(size_, input.size() - at)));
      size_ -= data.size();
      if (size_ == 0) state_ = State::kDataCr;
      overhead_ -= std::min(overhead_, data.size() * kOverheadPerByte);
      return Step{data, at + data.size(), false};
    }
    if (++overhead_ > overhead_max_)
      return std::unexpected(ParseError{ParseErrc::kMalformed, "chunk extensions or trailers too large", at});
    const State after = next(input[at]);
    if (after == State::kBad)
      return std::unexpected(ParseError{ParseErrc::kMalformed, complaint(input[at]), at});
    state_ = after;
  }
  return Step{{}, at, state_ == State::kDone};
}

ChunkDecoder::State ChunkDecoder::next(char c) {
  if (state_ <= State::kSize) return in_size(c);
  if (state_ <= State::kAfterQuoted) return in_extension(c);
  switch (state_) {
    case State::kSizeLf: return c != '\n' ? State::kBad : size_ == 0 ? State::kTrailerFirst : State::kData;
    case State::kDataCr: return c == '\r' ? State::kDataLf : State::kBad;
    case State::kDataLf: return c == '\n' ? State::kSizeFirst : State::kBad;
    case State::kLastLf: return c == '\n' ? State::kDone : State::kBad;
    default: return in_trailer(c);
  }
}

ChunkDecoder::State ChunkDecoder::in_size(char c) {
  if (!is(c, kHexDigit)) return state_ == State::kSize ? behind_size(c) : State::kBad;
  if (size_ > std::numeric_limits<std::uint64_t>::max() >> 4) return State::kBad;
  size_ = size_ << 4 | static_cast<std::uint64_t>(hex_value(c));
  return State::kSize;
}

// Behind a size, a name or a value: the next extension, or the end of the line.
ChunkDecoder::State ChunkDecoder::behind_size(char c) const {
  if (c == '\r') return State::kSizeLf;
  if (c == ';') return State::kNameFirst;
  return is_blank(c) ? State::kBeforeExtension : State::kBad;
}

ChunkDecoder::State ChunkDecoder::in_extension(char c) {
  const bool token = is(c, kTokenChar);
  switch (state_) {
    case State::kBeforeExtension: return c == ';' ? State::kNameFirst : is_blank(c) ? state_ : State::kBad;
    case State::kNameFirst: return token ? State::kName : is_blank(c) ? state_ : State::kBad;
    case State::kName:
      if (token) return state_;
      if (c == '=') return State::kValueFirst;
      return is_blank(c) ? State::kAfterName : behind_size(c);
    case State::kAfterName:
      if (c == '=') return State::kValueFirst;
      return c == ';' ? State::kNameFirst : is_blank(c) ? state_ : State::kBad;
    case State::kValueFirst:
      if (c == '"') return State::kQuoted;
      return token ? State::kValue : is_blank(c) ? state_ : State::kBad;
    case State::kValue: return token ? state_ : behind_size(c);
    case State::kQuoted:
      if (c == '"') return State::kAfterQuoted;
      if (c == '\\') return State::kEscaped;
      return is_text(c) ? state_ : State::kBad;
    case State::kEscaped: return is_text(c) ? State::kQuoted : State::kBad;
    default: return behind_size(c);
  }
}

ChunkDecoder::State ChunkDecoder::in_trailer(char c) {
  switch (state_) {
    case State::kTrailerFirst:
      if (c == '\r') return State::kLastLf;
      if (!is(c, kTokenChar)) return State::kBad;
      break;
    case State::kTrailerName:
      if (c == ':') {
        trailers_ += ": ";
        value_begin_ = trailers_.size();
        return State::kTrailerValue;
      }
      if (!is(c, kTokenChar)) return State::kBad;
      break;
    case State::kTrailerValue:
      if (c == '\r') return State::kTrailerLf;
      if (!is_text(c)) return State::kBad;
      // Not those in front of the value.
      if (!is_blank(c) || trailers_.size() > value_begin_) trailers_ += c;
      return state_;
    default: return c == '\n' ? end_trailer() : State::kBad;
  }
  trailers_ += c;
  return State::kTrailerName;
}

ChunkDecoder::State ChunkDecoder::end_trailer() {
  while (trailers_.size() > value_begin_ && is_blank(trailers_.back())) trailers_.pop_back();
  trailers_ += "\r\n";
  return State::kTrailerFirst;
}

const char* ChunkDecoder::complaint(char c) const {
  const bool ends_line = state_ == State::kSizeLf || state_ == State::kDataCr || state_ == State::kDataLf ||
                         state_ == State::kTrailerLf || state_ == State::kLastLf;
  if (ends_line || c == '\n') return "line does not end in CRLF";
  if (state_ <= State::kSize) return "malformed chunk size";
  return state_ <= State::kAfterQuoted ? "malformed chunk extension" : "malformed trailer";
}

}  // namespace tuza::http
