// Conn::send_file(): from a file to a socket.
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace tuza::net {
namespace {

using namespace testing;

class SendFileTest : public WithProcs {};
TUZA_WITH_PROCS(SendFileTest);

TEST_P(SendFileTest, HeadAndSliceArriveInOrderHoweverSlowlyTheyAreRead) {
  const TemporaryDirectory folder;
  std::mt19937_64 random(seed());
  const std::string content = random_bytes(random, 5'000'003);
  put_file(folder / "file", content);
  run_with(GetParam(), [&] {
    const File file = File::open(folder / "file").value();
    const File::Number number(file);
    TcpPair ends = tcp_pair();
    WaitGroup group;
    group.go([&] {
      FileSlice slice{number.fd(), 7, content.size() - 10};
      EXPECT_TRUE(ends.server.send_file(slice, "head"));
      EXPECT_EQ(slice.length, 0u);
      EXPECT_EQ(slice.offset, content.size() - 3);
      FileSlice nothing{number.fd(), 0, 0};
      EXPECT_TRUE(ends.server.send_file(nothing, "end"));
      EXPECT_TRUE(ends.server.close_write());
    });
    wait_until_parked(1, WaitReason::kIoWrite);  // the socket's buffers do not hold all of it
    EXPECT_TRUE(read_to_end(ends.client) == "head" + content.substr(7, content.size() - 10) + "end");
    group.wait();
  });
}

TEST_P(SendFileTest, AFileThatEndsEarlyIsAnErrorAndNoByteIsInvented) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "0123456789");
  run_with(GetParam(), [&] {
    const File file = File::open(folder / "file").value();
    const File::Number number(file);
    TcpPair ends = tcp_pair();
    FileSlice slice{number.fd(), 4, 20};
    const Result<void> sent = ends.server.send_file(slice, "head");
    ASSERT_FALSE(sent);
    EXPECT_TRUE(sent.error().is(Errc::kEndOfStream));
    EXPECT_EQ(slice.length, 14u) << "what has been sent is taken off";
    ends.server.close();
    EXPECT_EQ(read_to_end(ends.client), "head456789");
  });
}

TEST_P(SendFileTest, ItEndsWithItsContextItsTimeoutAndItsPeer) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "");
  std::filesystem::resize_file(folder / "file", std::size_t{1} << 30);  // takes no room on the disk
  run_with(GetParam(), [&] {
    const File file = File::open(folder / "file").value();
    const File::Number number(file);
    const auto all = [&number] { return FileSlice{number.fd(), 0, std::uint64_t{1} << 30}; };
    TcpPair ends = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx] {
      FileSlice slice = all();
      EXPECT_TRUE(ends.server.send_file(ctx, slice).error().cancelled());
      EXPECT_LT(slice.length, std::uint64_t{1} << 30);
    });
    wait_until_parked(1, WaitReason::kIoWrite);
    cancel();
    group.wait();

    ends.server.set_write_timeout(10ms);
    FileSlice late = all();
    EXPECT_TRUE(ends.server.send_file(late).error().timeout());

    ends.server.set_write_timeout(0ms);
    ends.server.set_write_deadline(kNoDeadline);
    group.go([&] {
      FileSlice slice = all();
      EXPECT_FALSE(ends.server.send_file(slice)) << "no SIGPIPE either";
    });
    wait_until_parked(1, WaitReason::kIoWrite);
    ends.client.close();
    group.wait();

    ends.server.close();
    FileSlice closed = all();
    EXPECT_TRUE(ends.server.send_file(closed).error().closed());
  });
}

// sendfile(2) refuses files that cannot feed a pipe.
TEST_P(SendFileTest, AFileWithoutPagesIsSentInPieces) {
  run_with(GetParam(), [] {
    const File file = File::open("/proc/self/cmdline").value();
    const File::Number number(file);
    const std::string expected = file_contents("/proc/self/cmdline");
    TcpPair ends = tcp_pair();
    FileSlice slice{number.fd(), 0, expected.size()};
    EXPECT_TRUE(ends.server.send_file(slice, std::string(100'000, 'h')));
    ends.server.close();
    EXPECT_TRUE(read_to_end(ends.client) == std::string(100'000, 'h') + expected);
  });
}

TEST_P(SendFileTest, ANumberKeepsAClosedFileOpen) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "content");
  run_with(GetParam(), [&] {
    File file = File::open(folder / "file").value();
    int fd = -1;
    {
      const File::Number number(file);
      fd = number.fd();
      ASSERT_TRUE(file.close());
      EXPECT_TRUE(is_open(fd));
      EXPECT_EQ(File::Number(file).fd(), -1);
    }
    EXPECT_FALSE(is_open(fd));
    EXPECT_EQ(File::Number(File()).fd(), -1);
  });
}

}  // namespace
}  // namespace tuza::net
