// Asio's synchronous algorithms over a net::Conn.
#include <tuza/framework/asio_sync_stream.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include <array>
#include <chrono>
#include <string>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;
using testing::WithProcs;

class SyncStreamTest : public WithProcs {};
TUZA_WITH_PROCS(SyncStreamTest);

struct Ends {
  net::Listener listener = net::listen("tcp", "127.0.0.1:0").value();
  net::Conn client = net::dial("tcp", listener.address()).value();
  net::Conn server = listener.accept().value();
};

TEST_P(SyncStreamTest, AlgorithmsReadAndWrite) {
  run_with(GetParam(), [] {
    Ends ends;
    WaitGroup group;
    group.go([&ends] {
      AsioSyncStream stream(ends.server);
      std::string line;
      const std::size_t n = asio::read_until(stream, asio::dynamic_buffer(line), '\n');
      EXPECT_EQ(line.substr(0, n), "question\n");
      const std::string large(1'000'000, 'x');
      const std::array<asio::const_buffer, 3> pieces{asio::buffer("answer", 6), asio::const_buffer(),
                                                     asio::buffer(large)};
      EXPECT_EQ(asio::write(stream, pieces), 1'000'006u);
      ends.server.close();
    });
    AsioSyncStream stream(ends.client);
    asio::write(stream, asio::buffer("question\n", 9));
    std::string all;
    std::error_code error;
    asio::read(stream, asio::dynamic_buffer(all), error);
    EXPECT_EQ(error, asio::error::eof);
    EXPECT_TRUE(all == "answer" + std::string(1'000'000, 'x'));
    group.wait();
  });
}

TEST_P(SyncStreamTest, ErrorsAreThoseOfAsio) {
  run_with(GetParam(), [] {
    Ends ends;
    std::array<char, 4> some;
    std::error_code error;
    AsioSyncStream plain(ends.client);
    EXPECT_EQ(plain.read_some(asio::mutable_buffer(), error), 0u) << "an empty buffer does not wait";
    EXPECT_FALSE(error);
    ends.client.set_read_deadline(net::TimePoint(1ns));
    plain.read_some(asio::buffer(some), error);
    EXPECT_EQ(error, asio::error::timed_out);
    EXPECT_THROW(plain.read_some(asio::buffer(some)), std::system_error);
    ends.client.set_read_deadline(net::kNoDeadline);
    auto [ctx, cancel] = with_cancel(Context::background());
    cancel();
    AsioSyncStream cancelled(ends.client, ctx);
    cancelled.read_some(asio::buffer(some), error);
    EXPECT_EQ(error, asio::error::operation_aborted);
    cancelled.write_some(asio::buffer("x", 1), error);
    EXPECT_EQ(error, asio::error::operation_aborted);
    ASSERT_TRUE(ends.server.set_linger_zero());
    ends.server.close();
    plain.read_some(asio::buffer(some), error);
    EXPECT_EQ(error, asio::error::connection_reset);
  });
}

}  // namespace
}  // namespace tuza
