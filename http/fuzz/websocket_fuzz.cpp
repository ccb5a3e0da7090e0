// Fuzz target: the frames of a WebSocket, those of a client and those of a server.
//
//   - Without compression, the events are those of a reference that reads frames one by one as RFC 6455 says.
//   - The limit of a message is exact without compression, and is never exceeded with it.
//   - Neither events nor their data depend on how the bytes arrive, nor on whether they are read in place.
//   - With compression, what ends well is UTF-8 where it is text.
//
// The input: flags (bit 0: compression; bit 1: the frames are a server's), limit (2 bytes), split point (2 bytes), frames. A frame's mask is applied to what
// the input has, so that a text is seldom what the input shows; masks of zero are.
//
// Covers: http/websocket/assembler.cpp http/websocket/frame.cpp http/websocket/utf8.cpp http/websocket/inflater.cpp
#include <tuza/http/websocket/assembler.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tuza::http::websocket {
namespace {

using fuzz::expect;
using Event = Assembler::Event;

// An event as text; "!" and the code for a violation, which is the last one.
std::string text_of(Event event, Opcode opcode, int code, std::string_view data) {
  const std::string bytes(data);
  switch (event) {
    case Event::kMore: return {};
    case Event::kMessage:
      return (opcode == Opcode::kText ? "T" : "B") + std::to_string(data.size()) + ":" + bytes;
    case Event::kPing: return "P" + std::to_string(data.size()) + ":" + bytes;
    case Event::kPong: return "Q" + std::to_string(data.size()) + ":" + bytes;
    case Event::kClose: return "C" + std::to_string(code) + ":" + bytes;
    case Event::kViolation: return "!" + std::to_string(code);
  }
  return "?";
}

bool ends(Event event) { return event == Event::kViolation || event == Event::kClose; }

class Ours {
 public:
  Ours(Role sender, std::size_t bytes_max, bool deflate) : bytes_max_(bytes_max) {
    if (deflate) inflater_.emplace(15, true);
    assembler_.emplace(sender, bytes_max, deflate ? &*inflater_ : nullptr);
  }

  void feed(std::string_view piece, bool in_place) {
    while (!ended_ && !piece.empty()) {
      const std::span<char> room = in_place && unread_.empty() ? assembler_->room() : std::span<char>();
      if (!room.empty()) {
        const std::size_t n = std::min(room.size(), piece.size());
        std::memcpy(room.data(), piece.data(), n);
        piece.remove_prefix(n);
        note(assembler_->filled(n));
        continue;
      }
      unread_ += piece;
      piece = {};
      take();
    }
  }
  [[nodiscard]] const std::string& events() const { return events_; }

 private:
  void take() {
    for (bool more = true; more && !ended_;) {
      // Memory of the exact size: a step beyond it is seen.
      const auto exact = std::make_unique<char[]>(unread_.size());
      std::memcpy(exact.get(), unread_.data(), unread_.size());
      const Assembler::Step step = assembler_->next({exact.get(), unread_.size()});
      expect(step.consumed <= unread_.size(), "a step consumes no more than there is");
      unread_.erase(0, step.consumed);
      more = step.event != Event::kMore;
      note(step);
    }
  }

  void note(const Assembler::Step& step) {
    events_ += text_of(step.event, step.opcode, step.code, step.data);
    ended_ = ends(step.event);
    if (step.event != Event::kMessage) return;
    expect(step.data.size() <= bytes_max_, "no message is longer than the limit", events_);
    Utf8 utf8;
    expect(step.opcode != Opcode::kText || (utf8.feed(step.data) && utf8.complete()), "text is UTF-8",
           step.data);
  }

  const std::size_t bytes_max_;
  std::optional<Inflater> inflater_;
  std::optional<Assembler> assembler_;
  std::string unread_, events_;
  bool ended_ = false;
};

// The length of the beginning of `text` that may be the beginning of UTF-8, by the table of RFC 3629 4.
std::size_t utf8_length(std::string_view text, bool& complete) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  complete = true;
  for (std::size_t i = 0; i < text.size();) {
    const unsigned c = at(i);
    const int tails = c < 0x80                 ? 0
                      : c >= 0xc2 && c <= 0xdf ? 1
                      : (c & 0xf0) == 0xe0     ? 2
                      : c >= 0xf0 && c <= 0xf4 ? 3
                                               : -1;
    if (tails < 0) return i;
    const unsigned low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    const unsigned high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    for (int tail = 1; tail <= tails; ++tail) {
      const std::size_t j = i + static_cast<std::size_t>(tail);
      if (j >= text.size()) {
        complete = false;
        return j;
      }
      if (at(j) < (tail == 1 ? low : 0x80) || at(j) > (tail == 1 ? high : 0xbf)) return j;
    }
    i += static_cast<std::size_t>(tails) + 1;
  }
  return text.size();
}

bool is_beginning(std::string_view text) {
  bool complete = false;
  return utf8_length(text, complete) == text.size();
}
bool is_utf8(std::string_view text) {
  bool complete = false;
  return utf8_length(text, complete) == text.size() && complete;
}

// Without compression: the events of all of `bytes` at once.
class Reference {
 public:
  Reference(bool masked, std::string_view bytes, std::size_t bytes_max)
      : masked_(masked), rest_(bytes), bytes_max_(bytes_max) {
    while (step()) {
    }
  }
  [[nodiscard]] const std::string& events() const { return events_; }

 private:
  bool fail(int code) {
    events_ += text_of(Event::kViolation, {}, code, {});
    return false;
  }
  [[nodiscard]] unsigned at(std::size_t i) const { return static_cast<unsigned char>(rest_[i]); }

  bool step() {
    if (rest_.empty()) return false;
    const unsigned opcode = at(0) & 15;
    const bool fin = at(0) >= 0x80, control = opcode >= 8;
    if ((at(0) & 0x70) != 0 || (opcode > 2 && opcode != 8 && opcode != 9 && opcode != 10)) return fail(1002);
    if (control && !fin) return fail(1002);
    if (rest_.size() < 2) return false;
    if ((at(1) >= 0x80) != masked_) return fail(1002);
    std::uint64_t length = at(1) & 127;
    if (control && length > 125) return fail(1002);
    const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (rest_.size() < 2 + more) return false;
    if (more > 0) {
      length = 0;
      for (std::size_t i = 0; i < more; ++i) length = length * 256 + at(2 + i);
      if (length < (more == 2 ? 126u : 65536u) || length > 0x7fff'ffff'ffff'ffff) return fail(1002);
    }
    const std::size_t mask_bytes = masked_ ? 4 : 0;
    if (rest_.size() < 2 + more + mask_bytes) return false;
    if (!control) {
      if ((opcode == 0) != in_message_) return fail(1002);
      if (length > bytes_max_ - message_.size()) return fail(1009);
    }
    const std::string_view mask = masked_ ? rest_.substr(2 + more, 4) : std::string_view("\0\0\0", 4);
    rest_.remove_prefix(2 + more + mask_bytes);
    const std::size_t there = static_cast<std::size_t>(std::min<std::uint64_t>(length, rest_.size()));
    std::string payload;
    for (std::size_t i = 0; i < there; ++i) payload += static_cast<char>(rest_[i] ^ mask[i % 4]);
    rest_.remove_prefix(there);
    return control ? whole_control(opcode, payload, there == length)
                   : part(opcode, payload, fin, there == length);
  }

  bool part(unsigned opcode, const std::string& payload, bool fin, bool whole) {
    if (opcode != 0) is_text_ = opcode == 1;
    in_message_ = true;
    message_ += payload;
    if (is_text_ && !is_beginning(message_)) return fail(1007);
    if (!whole) return false;
    if (!fin) return true;
    if (is_text_ && !is_utf8(message_)) return fail(1007);
    events_ += text_of(Event::kMessage, is_text_ ? Opcode::kText : Opcode::kBinary, 0, message_);
    message_.clear();
    in_message_ = false;
    return true;
  }

  bool whole_control(unsigned opcode, const std::string& payload, bool whole) {
    if (!whole) return false;
    if (opcode != 8) {
      events_ += text_of(opcode == 9 ? Event::kPing : Event::kPong, {}, 0, payload);
      return true;
    }
    if (payload.size() == 1) return fail(1002);
    int code = Assembler::kNoCode;
    if (!payload.empty()) {
      code = static_cast<unsigned char>(payload[0]) * 256 + static_cast<unsigned char>(payload[1]);
      const bool known =
          (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code < 5000);
      if (!known) return fail(1002);
      if (!is_utf8(std::string_view(payload).substr(2))) return fail(1007);
    }
    events_ += text_of(Event::kClose, {}, code,
                       std::string_view(payload).substr(std::min<std::size_t>(2, payload.size())));
    return false;
  }

  const bool masked_;
  std::string_view rest_;
  const std::size_t bytes_max_;
  bool in_message_ = false, is_text_ = false;
  std::string message_, events_;
};

void check_frames(fuzz::Input input) {
  const unsigned flags = input.byte();
  const bool deflate = (flags & 1) != 0;
  const Role sender = (flags & 2) != 0 ? Role::kServer : Role::kClient;
  const std::size_t bytes_max = input.number(2);
  const std::size_t split = input.number(2);
  const std::string_view bytes = input.rest();
  if (bytes.empty()) return;

  Ours whole(sender, bytes_max, deflate);
  whole.feed(bytes, false);
  if (!deflate) {
    const Reference reference(sender == Role::kClient, bytes, bytes_max);
    expect(whole.events() == reference.events(), "the events are those of the reference",
           whole.events() + "\nreference: " + reference.events());
  }
  for (const bool in_place : {false, true}) {
    Ours halves(sender, bytes_max, deflate), single(sender, bytes_max, deflate);
    halves.feed(bytes.substr(0, split % bytes.size()), in_place);
    halves.feed(bytes.substr(split % bytes.size()), in_place);
    expect(halves.events() == whole.events(), "a split does not change the events",
           whole.events() + "\nsplit: " + halves.events());
    for (const char c : bytes) single.feed({&c, 1}, in_place);
    expect(single.events() == whole.events(), "single bytes do not change the events",
           whole.events() + "\nbytes: " + single.events());
  }
}

}  // namespace
}  // namespace tuza::http::websocket

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::websocket::check_frames({data, size});
  return 0;
}
