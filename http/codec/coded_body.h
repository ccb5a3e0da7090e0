// The body of a message in a content coding, decoded while it is read; and what the fields say about it.
//
//     receive --- pieces as they have come ---> CodedBody ---> what they mean, up to the ratio
//
// Bodies that are small on the wire only are limited by `ratio_max`, decoded to received bytes. It counts behind the first MiB:
// small bodies repeat themselves. Against what is large and compresses well, the owner counts decoded bytes.
//
// Thread-unsafe. Parks where its owner receives.
#pragma once

#include <tuza/http/codec/codec.h>
#include <tuza/http/header_range.h>
#include <tuza/sched/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace tuza::http {

struct Head;

// What the Content-Encoding fields say.
struct ContentEncoding {
  std::optional<std::string_view> coding;  // the first one; nullopt: none, or "identity"
  bool several = false;                    // the body is coded more than once
};
[[nodiscard]] ContentEncoding content_encoding(const ReceivedHeaders& headers);

// Removes the fields that describe the coded body: Content-Encoding and Content-Length.
void hide_coding(Head& head, const char* base);

class CodedBody {
 public:
  struct Limits {
    std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();  // decoded
    std::size_t ratio_max;                                                // at least 1
  };
  // `operation`: for errors. Throws std::bad_alloc.
  CodedBody(Coding coding, const Limits& limits, const char* operation);
  CodedBody(const CodedBody&) = delete;
  CodedBody& operator=(const CodedBody&) = delete;

  // At least one byte; 0: the end of the body, or no room. `receive` is called as Result<std::size_t>(std::span<std::byte>),
  // where 0 is the end; its errors are passed on. Errc::kBadMessage, and again in each further call: malformed, truncated, or
  // too large. An empty body is the coding of an empty one.
  template <class Receive>
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into, const Receive& receive) {
    while (why_ == nullptr && !ended_ && !into.empty()) {
      if (unread_.empty() && !all_received_) {
        const Result<std::size_t> n = receive(std::as_writable_bytes(std::span(piece_)));
        if (!n) return n;
        received(*n);
      }
      if (const std::size_t n = decode(into); n > 0) return n;
    }
    if (why_ != nullptr) return std::unexpected(error());
    return std::size_t{0};
  }

  [[nodiscard]] bool ended() const { return ended_; }
  // Why nothing more can be read; null: no reason.
  [[nodiscard]] const char* why() const { return why_; }
  [[nodiscard]] bool too_large() const { return too_large_; }

 private:
  [[nodiscard]] Error error() const;
  void received(std::size_t n);
  std::size_t decode(std::span<std::byte> into);
  std::size_t account(std::size_t produced);

  const Limits limits_;
  const char* const operation_;
  const std::unique_ptr<Decoder> decoder_;
  std::array<char, 8 << 10> piece_;
  std::string_view unread_;  // a part of the piece
  bool all_received_ = false;
  bool ended_ = false;
  bool too_large_ = false;
  const char* why_ = nullptr;
  std::uint64_t received_ = 0, produced_ = 0;
};

}  // namespace tuza::http
