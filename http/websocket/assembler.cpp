#include <tuza/http/websocket/assembler.h>

#include <algorithm>
#include <cstring>

namespace tuza::http::websocket {
namespace {

constexpr int kProtocolError = 1002, kInvalidData = 1007, kTooLarge = 1009, kTryLater = 1013;
constexpr std::string_view kNotUtf8 = "text is not UTF-8", kTooLong = "message too long",
                           kTooMany = "too many messages at once";
// Below this, the rest of a frame is read together with what follows it.
constexpr std::size_t kReadInPlace = 4 << 10;

std::string_view view(std::span<char> bytes) { return {bytes.data(), bytes.size()}; }

// A compressed message may have no content for all its bytes (empty blocks): what cannot be compressed takes 5 bytes more
// for each block of 64 KiB at most, and little for many small fragments.
std::uint64_t compressed_bytes_max(std::size_t bytes_max) {
  return std::uint64_t{bytes_max} + bytes_max / 64 + 1024;
}

}  // namespace

Assembler::Step Assembler::next(std::span<char> bytes) {
  if (complete_) forget_message();
  std::size_t consumed = 0;
  for (;;) {
    Step step;
    const bool begins = !frame_;
    if (begins) {
      step = begin_frame(bytes.subspan(consumed));
      if (!frame_) {  // malformed, or the head is incomplete
        step.consumed = consumed;
        return step;
      }
      consumed += step.consumed;
    }
    step = take_payload(bytes.subspan(consumed));
    consumed += step.consumed;
    step.consumed = consumed;
    if (step.event != Event::kMore || frame_) return step;
  }
}

Assembler::Step Assembler::begin_frame(std::span<char> bytes) {
  const ParsedHead parsed = parse_frame_head(view(bytes), sender_, inflater_ != nullptr);
  if (!parsed.malformed.empty()) return violation(kProtocolError, parsed.malformed);
  if (!parsed.head) return {};
  const FrameHead& head = *parsed.head;
  if (!is_control(head.opcode)) {
    const bool continues = head.opcode == Opcode::kContinuation;
    if (continues != in_message_) {
      return violation(kProtocolError, continues ? "continuation of no message" : "message inside a message");
    }
    const bool compressed = continues ? compressed_ : head.compressed;
    const std::uint64_t before = !continues ? 0 : compressed ? wire_bytes_ : gathered_.size();
    const std::uint64_t most = compressed ? compressed_bytes_max(bytes_max_) : bytes_max_;
    if (head.length > most - before) return violation(kTooLarge, kTooLong);
    if (!continues) {
      in_message_ = true;
      compressed_ = compressed;
      kind_ = head.opcode;
      wire_bytes_ = 0;
      utf8_ = Utf8();
    }
    if (compressed) wire_bytes_ += head.length;
  }
  frame_ = head;
  taken_ = 0;
  return {.consumed = head.bytes};
}

// All that `bytes` has of the frame in progress.
Assembler::Step Assembler::take_payload(std::span<char> bytes) {
  const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left(), bytes.size()));
  const std::span<char> piece = bytes.first(size);
  unmask(piece);
  const bool whole = taken_ == 0 && size == frame_->length;
  Step step;
  if (is_control(frame_->opcode)) {
    if (!whole && size > 0) std::memcpy(control_.data() + taken_, piece.data(), size);
    taken_ += size;
    if (left() == 0) step = control(whole ? view(piece) : std::string_view(control_.data(), taken_));
  } else if (whole && frame_->fin && frame_->opcode != Opcode::kContinuation && !compressed_) {
    step = whole_message(piece);
  } else {
    step = gather(piece);
  }
  step.consumed = size;
  return step;
}

Assembler::Step Assembler::whole_message(std::span<char> payload) {
  frame_.reset();
  in_message_ = false;
  if (kind_ == Opcode::kText && !(utf8_.feed(view(payload)) && utf8_.complete())) {
    return violation(kInvalidData, kNotUtf8);
  }
  return {.event = Event::kMessage, .opcode = kind_, .data = view(payload)};
}

Assembler::Step Assembler::gather(std::span<char> piece) {
  taken_ += piece.size();
  if (compressed_) {
    if (Step step = inflate(view(piece)); step.event != Event::kMore) return step;
    return end_frame();
  }
  for (std::span<char> rest = piece; !rest.empty();) {
    const std::span<char> room = gathered_.room(rest.size(), bytes_max_);
    if (room.empty()) return violation(kTryLater, kTooMany);
    std::memcpy(room.data(), rest.data(), room.size());
    gathered_.filled(room.size());
    rest = rest.subspan(room.size());
  }
  if (kind_ == Opcode::kText && !utf8_.feed(view(piece))) return violation(kInvalidData, kNotUtf8);
  return end_frame();
}

std::span<char> Assembler::room() {
  if (!frame_ || is_control(frame_->opcode) || compressed_ || left() < kReadInPlace) return {};
  return gathered_.room(static_cast<std::size_t>(left()), bytes_max_);
}

Assembler::Step Assembler::filled(std::size_t bytes) {
  const std::span<char> added = gathered_.filled(bytes);
  unmask(added);
  taken_ += bytes;
  if (kind_ == Opcode::kText && !utf8_.feed(view(added))) return violation(kInvalidData, kNotUtf8);
  return end_frame();
}

// `piece` may be empty: the end of a frame may be the end of the message.
Assembler::Step Assembler::inflate(std::string_view piece) {
  const std::size_t before = gathered_.size();
  Inflater::Outcome outcome = inflater_->feed(piece, gathered_, bytes_max_);
  if (outcome == Inflater::Outcome::kDone && left() == 0 && frame_->fin) {
    outcome = inflater_->end(gathered_, bytes_max_);
  }
  // First what came out before it failed: the outcome does not depend on how the bytes arrive.
  if (kind_ == Opcode::kText && !utf8_.feed(gathered_.text().substr(before))) {
    return violation(kInvalidData, kNotUtf8);
  }
  if (outcome == Inflater::Outcome::kTooLarge) return violation(kTooLarge, kTooLong);
  if (outcome == Inflater::Outcome::kNoRoom) return violation(kTryLater, kTooMany);
  if (outcome == Inflater::Outcome::kMalformed) return violation(kInvalidData, "malformed compressed data");
  return {};
}

// Of a frame whose message is gathered, if all of it has been taken.
Assembler::Step Assembler::end_frame() {
  if (left() > 0) return {};
  const bool last = frame_->fin;
  frame_.reset();
  if (!last) return {};
  in_message_ = false;
  complete_ = true;
  if (kind_ == Opcode::kText && !utf8_.complete()) return violation(kInvalidData, kNotUtf8);
  return {.event = Event::kMessage, .opcode = kind_, .data = gathered_.text()};
}

void Assembler::forget_message() {
  complete_ = false;
  gathered_.clear();
}

Assembler::Step Assembler::control(std::string_view payload) {
  const Opcode opcode = frame_->opcode;
  frame_.reset();
  if (opcode == Opcode::kPing) return {.event = Event::kPing, .opcode = opcode, .data = payload};
  if (opcode == Opcode::kPong) return {.event = Event::kPong, .opcode = opcode, .data = payload};
  if (payload.empty()) return {.event = Event::kClose, .opcode = opcode, .code = kNoCode};
  if (payload.size() < 2) return violation(kProtocolError, "close frame with one byte");
  const int code = static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
  if (!is_close_code(code)) return violation(kProtocolError, "impossible close code");
  const std::string_view reason = payload.substr(2);
  if (Utf8 text; !text.feed(reason) || !text.complete())
    return violation(kInvalidData, "reason is not UTF-8");
  return {.event = Event::kClose, .opcode = opcode, .code = code, .data = reason};
}

}  // namespace tuza::http::websocket
