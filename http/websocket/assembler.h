// Makes messages out of the bytes that a peer sends: frames, fragments with control frames in between, limits, UTF-8,
// compression (RFC 6455 5 to 8, RFC 7692). Pure: it neither reads nor waits.
//
//     for (;;) {
//       const Assembler::Step step = assembler.next(unread);   // unmasks in place
//       unread = unread.subspan(step.consumed);
//       if (step.event == Assembler::Event::kMore) ...         // more bytes must be read behind `unread`
//     }
//
// A frame that is a whole message and lies in the input as a whole is handed out where it lies. Other messages are
// gathered; in the middle of a large frame, the bytes can be read right to where they belong: room(), filled().
//
// Thread-unsafe.
#pragma once

#include <tuza/http/websocket/frame.h>
#include <tuza/http/websocket/gather.h>
#include <tuza/http/websocket/inflater.h>
#include <tuza/http/websocket/utf8.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tuza::http::websocket {

class Assembler {
 public:
  // `sender`: of the bytes. `inflater`: null if no compression was agreed on. `budget`: of the messages that are gathered,
  // on all connections; null for no limit.
  Assembler(Role sender, std::size_t message_bytes_max, Inflater* inflater = nullptr,
            BodyBudget* budget = nullptr)
      : sender_(sender), bytes_max_(message_bytes_max), inflater_(inflater), gathered_(budget) {}

  enum class Event : std::uint8_t {
    kMore,     // needs bytes behind those that are not consumed
    kMessage,  // `opcode`: kText or kBinary
    kPing,     // to be answered with `data`
    kPong,
    kClose,      // `code`, kNoCode if the peer gave none; `data`: the reason
    kViolation,  // `code`: to close with; `data`: why. Nothing may follow
  };
  static constexpr int kNoCode = 1005;
  struct Step {
    Event event = Event::kMore;
    Opcode opcode{};
    int code = 0;
    std::string_view data{};  // valid until the next call
    std::size_t consumed = 0;
  };

  // Takes bytes up to the next event. Throws std::bad_alloc.
  [[nodiscard]] Step next(std::span<char> bytes);

  // Where the next bytes of the stream may be read to, when all bytes before them are consumed; empty: they are to be given
  // to next(). Throws std::bad_alloc.
  [[nodiscard]] std::span<char> room();
  // So many bytes have been read there.
  [[nodiscard]] Step filled(std::size_t bytes);

 private:
  Step begin_frame(std::span<char> bytes);
  Step take_payload(std::span<char> bytes);
  Step whole_message(std::span<char> payload);
  Step gather(std::span<char> piece);
  Step inflate(std::string_view piece);
  Step control(std::string_view payload);
  Step end_frame();
  void forget_message();
  void unmask(std::span<char> piece) {
    if (frame_->mask) apply_mask(piece, *frame_->mask, taken_);
  }
  [[nodiscard]] std::uint64_t left() const { return frame_->length - taken_; }
  static Step violation(int code, std::string_view why) {
    return {.event = Event::kViolation, .code = code, .data = why};
  }

  const Role sender_;
  const std::size_t bytes_max_;
  Inflater* const inflater_;

  std::optional<FrameHead> frame_;  // in progress
  std::uint64_t taken_ = 0;         // of its payload
  bool in_message_ = false;         // between the first frame of a message and the end of its last one
  bool complete_ = false;           // gathered_ has been handed out
  bool compressed_ = false;
  Opcode kind_{};
  std::uint64_t wire_bytes_ = 0;  // payload of the message so far, if it is compressed
  Utf8 utf8_;
  Gather gathered_;
  std::array<char, kControlBytesMax> control_;
};

}  // namespace tuza::http::websocket
