// Bodies taken out of the bytes behind a head, in every split and for every size of the reader's memory.
#include <gtest/gtest.h>
#include <tuza/http/wire/body_reader.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

// Bytes that arrive `piece` at a time.
class Arriving {
 public:
  Arriving(std::string_view bytes, std::size_t piece) : left_(bytes), piece_(piece) {}
  std::size_t read(std::span<std::byte> into) {
    const std::size_t n = std::min({into.size(), piece_, left_.size()});
    std::memcpy(into.data(), left_.data(), n);
    left_.remove_prefix(n);
    return n;
  }
  [[nodiscard]] std::string_view left() const { return left_; }

 private:
  std::string_view left_;
  std::size_t piece_;
};

// Reads as a connection does, `room` bytes at a time: the body, what ended it, and what is left for the next message.
std::string read_all(const std::function<void(BodyReader&)>& begin, std::string_view bytes, std::size_t piece,
                     std::size_t room) {
  Input input;
  BodyReader reader;
  begin(reader);
  Arriving source(bytes, piece);
  std::string body;
  std::array<std::byte, 64> memory;
  const std::span<std::byte> into = std::span(memory).first(room);
  const auto append = [&](std::size_t n) { body.append(reinterpret_cast<const char*>(memory.data()), n); };
  while (!reader.complete()) {
    const auto taken = reader.take(input, into);
    if (!taken) return body + "|" + std::string(taken.error().text);
    append(*taken);
    if (*taken > 0 || reader.complete()) continue;
    const std::size_t got =
        reader.reads_directly() ? source.read(reader.direct(into)) : source.read(input.space());
    if (got == 0) {
      if (!reader.end_of_stream()) return body + "|cut off";
      break;
    }
    if (reader.reads_directly()) {
      append(got);
      reader.took(got);
    } else {
      input.filled(got);
    }
  }
  return body + "|complete, then " + std::string(input.unread()) + std::string(source.left());
}

void expect_body(const std::function<void(BodyReader&)>& begin, std::string_view bytes,
                 std::string_view expected) {
  for (std::size_t piece = 1; piece <= bytes.size() + 1; ++piece) {
    for (const std::size_t room : {1u, 2u, 7u, 64u})
      EXPECT_EQ(read_all(begin, bytes, piece, room), expected) << piece << " at a time into " << room;
  }
}

TEST(BodyReader, StopsAtItsLength) {
  const auto five = [](BodyReader& reader) { reader.begin_length(5); };
  expect_body(five, "helloNEXT", "hello|complete, then NEXT");
  expect_body(five, "hel", "hel|cut off");
  expect_body([](BodyReader& reader) { reader.begin_length(0); }, "NEXT", "|complete, then NEXT");
  expect_body([](BodyReader& reader) { reader.begin(); }, "NEXT", "|complete, then NEXT");
}

TEST(BodyReader, StopsBehindTheLastChunk) {
  ChunkDecoder chunks;
  const auto begin = [&](BodyReader& reader) { reader.begin_chunks(chunks, 100); };
  expect_body(begin, "5\r\nhello\r\n1\r\n!\r\n0\r\nA: b\r\n\r\nNEXT", "hello!|complete, then NEXT");
  EXPECT_EQ(chunks.trailers(), "A: b\r\n");
  expect_body(begin, "5\r\nhello\r\n0\r\n", "hello|cut off");
  expect_body(begin, "5\r\nhelloX\r\n", "hello|line does not end in CRLF");
}

TEST(BodyReader, GoesOnToTheEndOfTheConnection) {
  const auto begin = [](BodyReader& reader) { reader.begin_until_close(); };
  expect_body(begin, "hello, all of it", "hello, all of it|complete, then ");
  expect_body(begin, "", "|complete, then ");
}

}  // namespace
}  // namespace tuza::http::testing
