// BufReader: lines and pieces of streams that arrive in any portions.
#include <tuza/netpoll/buf_reader.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace tuza::net {
namespace {

using namespace testing;

// A source that gives its text in portions of `portion` bytes, and then ends or fails.
struct Portions {
  Result<std::size_t> read(std::span<std::byte> into) {
    if (text.empty() && fails) return std::unexpected(Error::from_errno(EIO, "read"));
    const std::size_t n = std::min({portion, text.size(), into.size()});
    std::memcpy(into.data(), text.data(), n);
    text.erase(0, n);
    return n;
  }
  std::string text;
  std::size_t portion = 1;
  bool fails = false;
};

std::vector<std::string> lines_of(BufReader& in) {
  std::vector<std::string> all;
  for (auto line : in.lines()) all.emplace_back(line);
  return all;
}

TEST(BufReader, LinesInPortionsOfEverySize) {
  for (std::size_t portion = 1; portion < 20; ++portion) {
    for (const std::size_t buffer : {8u, 9u, 16u, 4096u}) {
      Portions source{"one\r\n\ntwo\nth\rree\r\nfour", portion};
      BufReader in(source, buffer);
      EXPECT_EQ(lines_of(in), (std::vector<std::string>{"one", "", "two", "th\rree", "four"}))
          << portion << " " << buffer;
      EXPECT_FALSE(in.error());
      EXPECT_TRUE(in.read_line().error().is(Errc::kEndOfStream));
    }
  }
}

TEST(BufReader, ATextWithoutALastNewlineOrWithoutAnything) {
  Portions empty{""};
  BufReader nothing(empty);
  EXPECT_EQ(lines_of(nothing), std::vector<std::string>{});
  Portions ended{"a\n"};
  BufReader one(ended);
  EXPECT_EQ(lines_of(one), std::vector<std::string>{"a"});
}

TEST(BufReader, AnErrorEndsTheLinesAndIsKept) {
  Portions source{"whole\npart", 3, true};
  BufReader in(source);
  EXPECT_EQ(lines_of(in), std::vector<std::string>{"whole"});
  ASSERT_TRUE(in.error());
  EXPECT_TRUE(in.error()->is(std::errc::io_error));
  EXPECT_EQ(in.buffered(), "part");
}

TEST(BufReader, ALineThatDoesNotFitIsRefusedAndLosesNothing) {
  Portions source{"12345678\n", 3};
  BufReader in(source, 8);
  EXPECT_TRUE(in.read_line().error().is(Errc::kBadMessage));
  EXPECT_EQ(in.read_string(9).value(), "12345678\n");
  Portions fits{"1234567\n", 3};
  BufReader exactly(fits, 8);
  EXPECT_EQ(exactly.read_line().value(), "1234567");
}

TEST(BufReader, PiecesOfKnownSizes) {
  for (std::size_t portion = 1; portion < 12; ++portion) {
    Portions source{"$5\r\nhello\r\nkey=value;rest of it", portion};
    BufReader in(source, 10);
    EXPECT_EQ(in.peek(1).value(), "$");
    EXPECT_EQ(in.read_line().value(), "$5");
    EXPECT_EQ(in.read_string(5).value(), "hello");
    EXPECT_EQ(in.read_line().value(), "");
    EXPECT_EQ(in.read_until('=').value(), "key");
    EXPECT_EQ(in.read_until(';').value(), "value");
    EXPECT_EQ(in.peek(100).value(), "rest of it") << "the size of the buffer";
    std::array<std::byte, 10> rest;
    EXPECT_TRUE(in.read_full(rest));
    EXPECT_EQ(std::memcmp(rest.data(), "rest of it", rest.size()), 0);
    EXPECT_EQ(in.read(std::span(rest)).value(), 0u) << "the end";
    EXPECT_EQ(in.peek(1).value(), "");
    EXPECT_TRUE(in.read_full(rest).error().is(Errc::kEndOfStream));
    EXPECT_TRUE(in.read_string(1).error().is(Errc::kEndOfStream));
  }
}

TEST(BufReader, AnEndInThePiece) {
  Portions source{"abc"};
  BufReader in(source);
  EXPECT_TRUE(in.read_string(std::size_t{1} << 50).error().is(Errc::kEndOfStream))
      << "and no memory for 2^50 bytes";
}

TEST(BufReader, WhatIsLargerThanTheBufferPassesByIt) {
  Portions source{"head\n" + std::string(100'000, 'x'), 5000};
  BufReader in(source, 1000);
  EXPECT_EQ(in.read_line().value(), "head");
  std::string all;
  std::array<char, 4000> some;
  while (const auto n = in.read(std::span<char>(some)).value()) all.append(some.data(), n);
  EXPECT_EQ(all, std::string(100'000, 'x'));
}

class BufReaderTest : public WithProcs {};
TUZA_WITH_PROCS(BufReaderTest);

TEST_P(BufReaderTest, ReadsAConnectionWithinAContext) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    BufReader in(ctx, pair.server);
    ASSERT_TRUE(pair.client.write_all("PING\r\nhalf"));
    EXPECT_EQ(in.read_line().value(), "PING");
    WaitGroup group;
    group.go([&in] { EXPECT_TRUE(in.read_line().error().cancelled()); });
    wait_until_parked(1, WaitReason::kIoRead);
    cancel();
    group.wait();
    EXPECT_EQ(in.buffered(), "half");
  });
}

TEST_P(BufReaderTest, ReadsAFile) {
  run_with(GetParam(), [] {
    File file = File::open("/proc/self/status").value();
    BufReader in(file);
    const auto all = lines_of(in);
    EXPECT_GT(all.size(), 10u);
    EXPECT_TRUE(all.front().starts_with("Name:\t")) << all.front();
  });
}

}  // namespace
}  // namespace tuza::net
