// BufWriter: small pieces that go out together.
#include <tuza/netpoll/buf_reader.h>
#include <tuza/netpoll/buf_writer.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <cerrno>
#include <string>
#include <vector>

namespace tuza::net {
namespace {

using namespace testing;

// Keeps what it gets, piece by piece; fails once it has got `pieces_max`.
struct Pieces {
  Result<void> write_all(std::span<const std::byte> data) {
    if (pieces.size() == pieces_max) return std::unexpected(Error::from_errno(EIO, "write"));
    pieces.emplace_back(reinterpret_cast<const char*>(data.data()), data.size());
    return {};
  }
  std::vector<std::string> pieces;
  std::size_t pieces_max = 100;
};
using All = std::vector<std::string>;

TEST(BufWriter, SmallPiecesGoOutTogether) {
  Pieces sink;
  {
    BufWriter out(sink, 8);
    for (const char* piece : {"one", "", "two"}) EXPECT_TRUE(out.write_all(piece));
    EXPECT_EQ(out.buffered(), 6u);
    EXPECT_EQ(sink.pieces, All{});
    EXPECT_TRUE(out.write_all("3!"));  // fits exactly
    EXPECT_EQ(sink.pieces, All{});
    EXPECT_TRUE(out.write_all("4"));
    EXPECT_EQ(sink.pieces, All{"onetwo3!"});
    EXPECT_TRUE(out.flush());
    EXPECT_TRUE(out.flush());
    EXPECT_EQ(sink.pieces, (All{"onetwo3!", "4"}));
    EXPECT_TRUE(out.write_all("last"));
  }
  EXPECT_EQ(sink.pieces, (All{"onetwo3!", "4", "last"}));
}

TEST(BufWriter, ALargePieceIsNotCopiedAndKeepsItsPlace) {
  Pieces sink;
  BufWriter out(sink, 8);
  EXPECT_TRUE(out.write_all("a"));
  EXPECT_TRUE(out.write_all("123456789"));
  EXPECT_TRUE(out.write_all("123456789"));
  EXPECT_EQ(sink.pieces, (All{"a", "123456789", "123456789"}));
  Pieces at_once;
  BufWriter without(at_once, 0);
  EXPECT_TRUE(without.write_all("b"));
  EXPECT_TRUE(without.write_all(""));
  EXPECT_EQ(at_once.pieces.front(), "b");
}

TEST(BufWriter, AfterAnErrorNothingMoreIsWritten) {
  Pieces sink{.pieces = {}, .pieces_max = 1};
  {
    BufWriter out(sink, 4);
    EXPECT_TRUE(out.write_all("good"));
    EXPECT_TRUE(out.write_all("lost"));
    EXPECT_TRUE(out.flush().error().is(std::errc::io_error));
    sink.pieces_max = 100;
    EXPECT_TRUE(out.write_all("late").error().is(std::errc::io_error));
    EXPECT_TRUE(out.write_all("much too late").error().is(std::errc::io_error));
    EXPECT_TRUE(out.flush().error().is(std::errc::io_error));
  }
  EXPECT_EQ(sink.pieces, All{"good"});
}

class BufWriterTest : public WithProcs {};
TUZA_WITH_PROCS(BufWriterTest);

TEST_P(BufWriterTest, WritesToAConnectionWithinAContext) {
  run_with(GetParam(), [] {
    auto [client, server] = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    BufWriter out(ctx, client);
    for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(out.write_all("line\n"));
    EXPECT_TRUE(out.flush());
    BufReader in(server);
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(in.read_line(), "line");
    EXPECT_TRUE(out.write_all("held back"));
    cancel();
    EXPECT_TRUE(out.flush().error().cancelled());
  });
}

TEST(BufWriter, IsASinkItself) {
  Pieces sink;
  BufWriter out(sink);
  struct Source {
    Result<std::size_t> read(std::span<std::byte> into) {
      if (left == 0) return 0;
      into[0] = static_cast<std::byte>('a' + --left);
      return 1;
    }
    int left = 3;
  } source;
  EXPECT_EQ(copy(out, source), 3u);
  EXPECT_TRUE(out.flush());
  EXPECT_EQ(sink.pieces, All{"cba"});
}

}  // namespace
}  // namespace tuza::net
