// The bytes of WebSocket clients as documents: what RFC 6455 and RFC 7692 say about them, whole, byte by byte and at each
// split.
#include <tuza/http/serve/body_budget.h>
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket/assembler.h>
#include <tuza/http/websocket/deflater.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using websocket::Assembler;
using websocket::Deflater;
using websocket::Inflater;
using websocket::Opcode;
using websocket::Role;
using Event = Assembler::Event;

constexpr std::size_t kMessageMax = 300;

std::string describe(const Assembler::Step& step) {
  const std::string data(step.data);
  switch (step.event) {
    case Event::kMore: return {};
    case Event::kMessage: return (step.opcode == Opcode::kText ? "text:" : "binary:") + data + " ";
    case Event::kPing: return "ping:" + data + " ";
    case Event::kPong: return "pong:" + data + " ";
    case Event::kClose: return "close:" + std::to_string(step.code) + ":" + data + " ";
    case Event::kViolation: return std::to_string(step.code);
  }
  return "?";
}

// Feeds pieces that end at `ends` as the connection does: what is not consumed stays in front of the next piece. Each
// piece is in memory of its exact size, so that AddressSanitizer sees a step beyond it.
std::string events(std::string_view bytes, const std::vector<std::size_t>& ends, bool deflate = false) {
  Inflater inflater(15, true);
  Assembler assembler(Role::kClient, kMessageMax, deflate ? &inflater : nullptr);
  std::string all, unread;
  std::size_t at = 0;
  for (const std::size_t end : ends) {
    const std::string_view piece = bytes.substr(at, end - at);
    unread += piece;
    at = end;
    for (bool more = true; more;) {
      const auto exact = std::make_unique<char[]>(unread.size());
      std::memcpy(exact.get(), unread.data(), unread.size());
      const Assembler::Step step = assembler.next({exact.get(), unread.size()});
      EXPECT_LE(step.consumed, unread.size());
      all += describe(step);
      if (step.event == Event::kViolation) return all;
      unread.erase(0, step.consumed);
      more = step.event != Event::kMore;
    }
  }
  return all;
}

std::vector<std::size_t> every(std::size_t size) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= size; ++i) ends.push_back(i);
  return ends;
}

struct FrameCase {
  const char* title;
  std::string bytes;
  std::string expected;  // the events; a number is a violation with that code
  bool deflate = false;
};

std::string text(std::string_view payload) { return frame(1, payload); }
std::string part(int opcode, std::string_view payload) { return frame(opcode, payload, {.fin = false}); }

const std::string a125(125, 'a'), a126(126, 'a'), a300(300, 'a'), a301(301, 'a');

std::vector<FrameCase> fragments() {
  return {
      {"5.7: a text in one frame", text("Hello"), "text:Hello "},
      {"5.7: the mask of the example", "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "text:Hello "},
      {"5.7: a text in two frames", part(1, "Hel") + frame(0, "lo"), "text:Hello "},
      {"5.6: an empty text", text(""), "text: "},
      {"5.6: binary data may be anything", frame(2, "\xff\xfe\x80"), "binary:\xff\xfe\x80 "},
      {"5.4: empty fragments", part(1, "") + part(0, "") + frame(0, ""), "text: "},
      {"5.4: many fragments", part(2, "a") + part(0, "") + part(0, "b") + frame(0, "c"), "binary:abc "},
      {"5.4: control frames in between", part(1, "Hel") + frame(9, "p") + frame(10, "q") + frame(0, "lo"),
       "ping:p pong:q text:Hello "},
      {"5.4: messages follow each other", text("a") + frame(2, "b") + text("c"), "text:a binary:b text:c "},
      {"5.4: a message begins inside another", part(1, "a") + text("b"), "1002"},
      {"5.4: a continuation of nothing", frame(0, "a"), "1002"},
      {"5.4: a continuation behind the end", text("a") + frame(0, "b"), "text:a 1002"},
  };
}

std::vector<FrameCase> heads() {
  return {
      {"5.1: an unmasked frame", frame(1, "a", {.masked = false}), "1002"},
      {"5.1: an unmasked control frame", frame(9, "", {.masked = false}), "1002"},
      {"5.2: RSV1 without an extension", frame(1, "a", {.rsv = 4}), "1002"},
      {"5.2: RSV2", frame(1, "a", {.rsv = 2}), "1002"},
      {"5.2: RSV3", frame(2, "a", {.rsv = 1}), "1002"},
      {"5.2: RSV1 in a ping", frame(9, "", {.rsv = 4}), "1002"},
      {"5.2: opcode 3", frame(3, ""), "1002"},
      {"5.2: opcode 4", frame(4, "a"), "1002"},
      {"5.2: opcode 5, behind a message", text("a") + frame(5, ""), "text:a 1002"},
      {"5.2: opcode 6, between fragments", part(1, "a") + frame(6, "b"), "1002"},
      {"5.2: opcode 7", frame(7, ""), "1002"},
      {"5.2: opcode 11", frame(11, ""), "1002"},
      {"5.2: opcode 12", frame(12, "a"), "1002"},
      {"5.2: opcode 13, behind a message", text("a") + frame(13, ""), "text:a 1002"},
      {"5.2: opcode 14, between fragments", part(1, "a") + frame(14, "b"), "1002"},
      {"5.2: opcode 15", frame(15, ""), "1002"},
      {"5.2: a mask of zeros", frame(1, "abc", {.mask = 0}), "text:abc "},
      {"5.2: 125 bytes have a length of 7 bits", frame(2, a125), "binary:" + a125 + " "},
      {"5.2: 126 bytes have one of 16 bits", frame(2, a126), "binary:" + a126 + " "},
      {"5.2: 125 bytes with a length of 16 bits", frame(2, a125, {.length_bytes = 2}), "1002"},
      {"5.2: 126 bytes with a length of 64 bits", frame(2, a126, {.length_bytes = 8}), "1002"},
      {"5.2: a length of 64 bits", frame(2, "", {.claimed_length = std::uint64_t{1} << 63}), "1002"},
  };
}

std::vector<FrameCase> controls() {
  return {
      {"5.5: a ping of 125 bytes", frame(9, a125), "ping:" + a125 + " "},
      {"5.5: a ping of 126 bytes", frame(9, a126), "1002"},
      {"5.5: a ping in fragments", part(9, "a"), "1002"},
      {"5.5: a close in fragments", part(8, ""), "1002"},
      {"5.5: pings follow each other",
       frame(9, "0") + frame(9, "") + frame(9, "2") + frame(9, "3") + frame(9, "4") + frame(9, "5") +
           frame(9, "6") + frame(9, "7") + frame(9, "8") + frame(9, "9"),
       "ping:0 ping: ping:2 ping:3 ping:4 ping:5 ping:6 ping:7 ping:8 ping:9 "},
      {"5.5: a pong that nobody has asked for", frame(10, "q") + frame(9, "p"), "pong:q ping:p "},
      {"5.5.1: a close without a code", frame(8, ""), "close:1005: "},
      {"5.5.1: a close with one byte", frame(8, "a"), "1002"},
      {"5.5.1: a close with a reason", close_frame(1001, "bye"), "close:1001:bye "},
      {"5.5.1: a reason of 123 bytes", close_frame(1000, a125.substr(2)),
       "close:1000:" + a125.substr(2) + " "},
      {"5.5.1: a reason that is not UTF-8", close_frame(1000, "\xff"), "1007"},
      {"5.5.1: a reason that ends within a character", close_frame(1000, "\xc3"), "1007"},
      {"7.4.1: 0", close_frame(0), "1002"},
      {"7.4.1: 999", close_frame(999), "1002"},
      {"7.4.1: 1003", close_frame(1003), "close:1003: "},
      {"7.4.1: 1004 is reserved", close_frame(1004), "1002"},
      {"7.4.1: 1005 is never sent", close_frame(1005), "1002"},
      {"7.4.1: 1006 is never sent", close_frame(1006), "1002"},
      {"7.4.1: 1007", close_frame(1007), "close:1007: "},
      {"7.4.1: 1011", close_frame(1011), "close:1011: "},
      {"registered later: 1012", close_frame(1012), "close:1012: "},
      {"registered later: 1013", close_frame(1013), "close:1013: "},
      {"registered later: 1014", close_frame(1014), "close:1014: "},
      {"7.4.1: 1015 is never sent", close_frame(1015), "1002"},
      {"7.4.2: 1016", close_frame(1016), "1002"},
      {"7.4.2: 1100", close_frame(1100), "1002"},
      {"7.4.2: 2000", close_frame(2000), "1002"},
      {"7.4.2: 2999", close_frame(2999), "1002"},
      {"7.4.2: 3000", close_frame(3000), "close:3000: "},
      {"7.4.2: 4999", close_frame(4999), "close:4999: "},
      {"7.4.2: 5000", close_frame(5000), "1002"},
      {"7.4.2: 65535", close_frame(65535), "1002"},
  };
}

std::vector<FrameCase> texts_and_limits() {
  return {
      {"8.1: characters of all lengths", text("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
       "text:a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 "},
      {"8.1: a character in two frames", part(1, "\xe2\x82") + frame(0, "\xac"), "text:\xe2\x82\xac "},
      {"8.1: a character is not complete", text("abcdefgh\xe2\x82"), "1007"},
      {"8.1: nor at the end of fragments", part(1, "a\xe2") + frame(0, ""), "1007"},
      {"8.1: a lone continuation byte", text("\x80"), "1007"},
      {"8.1: an overlong form", text("\xc0\xaf"), "1007"},
      {"8.1: an overlong form of three bytes", text("\xe0\x9f\xbf"), "1007"},
      {"8.1: a surrogate", text("\xed\xa0\x80"), "1007"},
      {"8.1: above U+10FFFF", text("\xf4\x90\x80\x80"), "1007"},
      {"8.1: it is noticed before the message is complete", part(1, "\xff"), "1007"},
      {"limit: a message of 300 bytes", frame(2, a300), "binary:" + a300 + " "},
      {"limit: one of 301", frame(2, a301), "1009"},
      {"limit: 301 in fragments", part(2, a300) + frame(0, "a"), "1009"},
      {"limit: each message has its own", frame(2, a300) + frame(2, a300),
       "binary:" + a300 + " binary:" + a300 + " "},
      {"limit: what a head announces is enough", frame(2, "", {.claimed_length = 1u << 30}), "1009"},
  };
}

std::vector<FrameCase> compressed_messages() {
  return {
      {"7692 7.2.3.1: compressed text", frame(1, {"\xf2\x48\xcd\xc9\xc9\x07\x00", 7}, {.rsv = 4}),
       "text:Hello ", true},
      {"7692 7.2.3.1: in fragments",
       frame(1, {"\xf2\x48\xcd", 3}, {.fin = false, .rsv = 4}) + frame(9, "") +
           frame(0, {"\xc9\xc9\x07\x00", 4}),
       "ping: text:Hello ", true},
      {"7692 7.2.3.2: a message refers to the one before",
       frame(1, {"\xf2\x48\xcd\xc9\xc9\x07\x00", 7}, {.rsv = 4}) +
           frame(1, {"\xf2\x00\x11\x00\x00", 5}, {.rsv = 4}),
       "text:Hello text:Hello ", true},
      {"7692 7.2.3.3: a block without compression",
       frame(1, {"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", 11}, {.rsv = 4}), "text:Hello ", true},
      {"7692 7.2.3.4: a block that says it is the last",
       frame(1, {"\xf3\x48\xcd\xc9\xc9\x07\x00\x00", 8}, {.rsv = 4}) +
           frame(1, {"\xf2\x00\x11\x00\x00", 5}, {.rsv = 4}),
       "text:Hello text:Hello ", true},
      {"7692 7.2.3.5: two blocks",
       frame(1, {"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", 13}, {.rsv = 4}), "text:Hello ",
       true},
      {"7692 6: an uncompressed message among them",
       text("a") + frame(1, {"\xf2\x48\xcd\xc9\xc9\x07\x00", 7}, {.rsv = 4}), "text:a text:Hello ", true},
      {"7692 6.1: RSV1 in a continuation",
       frame(1, {"\xf2\x48\xcd", 3}, {.fin = false, .rsv = 4}) +
           frame(0, {"\xc9\xc9\x07\x00", 4}, {.rsv = 4}),
       "1002", true},
      {"7692 6.1: RSV1 in a ping", frame(9, "", {.rsv = 4}), "1002", true},
      {"7692 6.2: what is no compressed data", frame(1, "\xff\xff\xff", {.rsv = 4}), "1007", true},
      {"7692 6.2: compressed data that breaks off", frame(1, {"\xf2\x48\xcd", 3}, {.rsv = 4}), "1007", true},
      {"7692: compressed text that is not UTF-8", frame(1, {"\x00\x01\x00\xfe\xff\xff\x00", 7}, {.rsv = 4}),
       "1007", true},
  };
}

TEST(WebSocketFrames, EachRuleWholeByteByByteAndAtEachSplit) {
  std::vector<FrameCase> all;
  for (auto* const cases : {fragments, heads, controls, texts_and_limits, compressed_messages})
    for (FrameCase& c : cases()) all.push_back(std::move(c));
  for (const FrameCase& c : all) {
    SCOPED_TRACE(c.title);
    const std::size_t size = c.bytes.size();
    EXPECT_EQ(events(c.bytes, {size}, c.deflate), c.expected);
    EXPECT_EQ(events(c.bytes, every(size), c.deflate), c.expected);
    for (std::size_t i = 1; i < size; ++i) ASSERT_EQ(events(c.bytes, {i, size}, c.deflate), c.expected) << i;
  }
}

std::string compressed(std::string_view message, Deflater& deflater) {
  std::string all;
  for (bool done = false; !done;) {
    std::array<char, 64> out;
    const Deflater::Progress progress = deflater.feed(message, out);
    all.append(out.data(), progress.produced);
    done = progress.done;
  }
  EXPECT_TRUE(all.ends_with(std::string_view("\x00\x00\xff\xff", 4)));
  return all.substr(0, all.size() - Deflater::kTailBytes);
}

TEST(WebSocketFrames, WhatIsCompressedIsTheSameAfterwards) {
  for (const bool takeover : {true, false}) {
    for (const int bits : {9, 15}) {
      Deflater deflater(bits, takeover, 6);
      std::string bytes, expected;
      for (std::size_t size = 1; size <= kMessageMax; size += 23) {
        std::string message;
        for (std::size_t i = 0; i < size; ++i) message += static_cast<char>('a' + i * i % 7);
        bytes += frame(1, compressed(message, deflater), {.rsv = 4});
        expected += "text:" + message + " ";
      }
      EXPECT_EQ(events(bytes, {bytes.size()}, true), expected);
      EXPECT_EQ(events(bytes, every(bytes.size()), true), expected);
    }
  }
}

TEST(WebSocketFrames, TheLimitCountsWhatWasCompressed) {
  for (const auto& [size, expected] : {std::pair(kMessageMax, "text:" + std::string(kMessageMax, 'x') + " "),
                                       std::pair(kMessageMax + 1, std::string("1009"))}) {
    Deflater deflater(15, true, 9);
    const std::string bytes = frame(1, compressed(std::string(size, 'x'), deflater), {.rsv = 4});
    EXPECT_EQ(events(bytes, {bytes.size()}, true), expected);
    EXPECT_EQ(events(bytes, every(bytes.size()), true), expected);
  }
  // A bomb of a thousand to one ends at the limit.
  Deflater deflater(15, true, 9);
  const std::string bomb = frame(2, compressed(std::string(1 << 20, 'x'), deflater), {.rsv = 4});
  EXPECT_LT(bomb.size(), 1400u);
  EXPECT_EQ(events(bomb, {bomb.size()}, true), "1009");
}

TEST(WebSocketFrames, CompressedBytesWithoutContentAreLimited) {
  std::string empty_blocks;
  while (empty_blocks.size() < 3000) empty_blocks.append("\x00\x00\x00\xff\xff", 5);
  std::string bytes = frame(2, empty_blocks, {.rsv = 4});
  EXPECT_EQ(events(bytes, {bytes.size()}, true), "1009");
  bytes = frame(2, empty_blocks.substr(0, 500), {.fin = false, .rsv = 4});
  for (int i = 0; i < 6; ++i) bytes += part(0, empty_blocks.substr(0, 500));
  EXPECT_EQ(events(bytes, {bytes.size()}, true), "1009");
}

TEST(WebSocketFrames, ALargeFrameIsReadInPlaceAndGrowsWithWhatArrives) {
  std::string payload;
  for (int i = 0; i < 200'000; ++i) payload += static_cast<char>('a' + i % 23);
  const std::string bytes = frame(1, payload);
  Assembler assembler(Role::kClient, 1 << 20);
  std::string head = bytes.substr(0, 100);
  Assembler::Step step = assembler.next(head);
  ASSERT_EQ(step.event, Event::kMore);
  ASSERT_EQ(step.consumed, 100u);
  EXPECT_LE(assembler.room().size(), 32u << 10) << "no more than a step ahead of what has arrived";
  for (std::size_t at = 100; at < bytes.size();) {
    std::span<char> room = assembler.room();
    std::string rest;
    if (room.empty()) {
      rest = bytes.substr(at);
      step = assembler.next(rest);
      at += step.consumed;
    } else {
      const std::size_t n = std::min({room.size(), bytes.size() - at, std::size_t{4099}});
      std::memcpy(room.data(), bytes.data() + at, n);
      step = assembler.filled(n);
      at += n;
    }
    if (at < bytes.size()) {
      ASSERT_EQ(step.event, Event::kMore) << at;
    } else {
      ASSERT_EQ(step.event, Event::kMessage);
      EXPECT_TRUE(step.data == payload);
    }
  }
}

// Gives `bytes` to an assembler as a connection reads them, 64 KiB at most at a time, and returns the last step.
Assembler::Step read_all(Assembler& assembler, std::string& bytes) {
  constexpr std::size_t kRead = 64 << 10;
  Assembler::Step step;
  std::size_t taken = 0, read = 0;
  while (read < bytes.size() && step.event == Event::kMore) {
    const std::span<char> room = taken == read ? assembler.room() : std::span<char>();
    const std::size_t n = std::min({room.empty() ? kRead : room.size(), kRead, bytes.size() - read});
    read += n;
    if (room.empty()) {
      step = assembler.next({bytes.data() + taken, read - taken});
      taken += step.consumed;
    } else {
      std::memcpy(room.data(), bytes.data() + taken, n);
      step = assembler.filled(n);
      taken = read;
    }
  }
  EXPECT_EQ(taken, bytes.size());
  return step;
}

TEST(WebSocketFrames, LargeMessagesInFragmentsOfAllSizes) {
  std::string payload;
  while (payload.size() < 16u << 20) payload += "a\xc3\xa4\xe2\x82\xac\n";  // fragments end within characters
  const auto check = [&payload](int opcode, std::size_t bytes, std::size_t fragment) {
    SCOPED_TRACE(std::to_string(bytes) + " in fragments of " + std::to_string(fragment));
    const std::string_view message = std::string_view(payload).substr(0, bytes / 7 * 7);  // whole characters
    std::string sent;
    for (std::size_t at = 0; at < message.size(); at += fragment) {
      const std::string_view piece = message.substr(at, fragment);
      sent += frame(at == 0 ? opcode : 0, {},
                    {.fin = at + fragment >= message.size(), .mask = 0, .claimed_length = piece.size()});
      sent += piece;  // which a mask of zeros leaves as it is
    }
    Assembler assembler(Role::kClient, bytes);
    const Assembler::Step step = read_all(assembler, sent);
    ASSERT_EQ(step.event, Event::kMessage) << step.data;
    EXPECT_EQ(static_cast<int>(step.opcode), opcode);
    EXPECT_TRUE(step.data == message);
  };
  check(1, 64 << 10, 4 << 10);
  check(2, 256 << 10, 4 << 10);
  for (const std::size_t fragment : {64u, 256u, 1u << 10, 16u << 10, 64u << 10, 1u << 20})
    check(1, 1 << 20, fragment);
  check(2, 4 << 20, 4 << 10);
  check(1, 16 << 20, 256 << 10);
}

TEST(WebSocketFrames, LargeMessagesOfAllConnectionsHaveALimit) {
  BodyBudget budget(40'000);
  Inflater inflater(15, true);
  Assembler one(Role::kClient, 1 << 20, nullptr, &budget), other(Role::kClient, 1 << 20, nullptr, &budget),
      packed(Role::kClient, 1 << 20, &inflater, &budget);
  const std::string large = frame(2, std::string(30'000, 'x'));
  const auto next = [](Assembler& assembler, std::string bytes) { return assembler.next(bytes); };
  EXPECT_EQ(next(one, large.substr(0, 29'000)).event, Event::kMore);
  EXPECT_GE(budget.held(), 29'000u);
  EXPECT_EQ(next(other, large).event, Event::kMessage) << "a message that lies in the input takes nothing";
  EXPECT_EQ(next(other, large.substr(0, 29'000)).code, 1013);
  Deflater deflater(15, true, 9);
  const std::string bomb = frame(2, compressed(std::string(30'000, 'x'), deflater), {.rsv = 4});
  EXPECT_EQ(next(packed, bomb).code, 1013);
  EXPECT_EQ(next(one, large.substr(29'000)).event, Event::kMessage);
}

TEST(WebSocketFrames, MemoryOfAMessageGoesBackWithTheNextOne) {
  BodyBudget budget(1 << 20);
  {
    Assembler assembler(Role::kClient, 1 << 20, nullptr, &budget);
    std::string bytes = frame(2, std::string(30'000, 'x'));
    std::string first = bytes.substr(0, 29'000), second = bytes.substr(29'000);
    EXPECT_EQ(assembler.next(first).event, Event::kMore);
    EXPECT_EQ(assembler.next(second).event, Event::kMessage);
    EXPECT_GE(budget.held(), 30'000u);
    EXPECT_EQ(assembler.next({}).event, Event::kMore);
    EXPECT_EQ(budget.held(), 0u);
    EXPECT_EQ(assembler.next(first = bytes.substr(0, 29'000)).event, Event::kMore);
    EXPECT_GT(budget.held(), 0u);
  }
  EXPECT_EQ(budget.held(), 0u);
}

TEST(WebSocketFrames, TextReadInPlaceIsCheckedAsItArrives) {
  const std::string bytes = frame(1, std::string(9000, 'a') + "\xff" + std::string(9000, 'a'));
  Assembler assembler(Role::kClient, 1 << 20);
  std::string head = bytes.substr(0, 20);
  ASSERT_EQ(assembler.next(head).event, Event::kMore);
  const std::span<char> room = assembler.room();
  ASSERT_GE(room.size(), 9100u);
  std::memcpy(room.data(), bytes.data() + 20, 9100);
  const Assembler::Step step = assembler.filled(9100);
  EXPECT_EQ(step.event, Event::kViolation);
  EXPECT_EQ(step.code, 1007);
}

TEST(WebSocketFrames, EveryCodePointAndNoOther) {
  for (std::uint32_t c = 0; c < 0x110800; c += c < 0x900 || (c >= 0xd700 && c < 0xe100) ? 1 : 61) {
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
              static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    websocket::Utf8 checked;
    const bool valid = c < 0x110000 && (c < 0xd800 || c > 0xdfff);
    ASSERT_EQ(checked.feed(text) && checked.complete(), valid) << std::hex << c;
  }
}

}  // namespace
}  // namespace tuza::http::testing
