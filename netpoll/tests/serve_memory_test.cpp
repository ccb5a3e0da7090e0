// A server whose address space is limited (`ulimit -v`, softlimit, LimitAS=) closes the connections whose goroutine would
// have no stack, and serves the others. What needs a second goroutine is an error there.
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tuza::net::testing {
namespace {

using tuza::testing::in_fork;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Eight clients come to a server that has room for the stacks of two or three.
void serve_more_than_there_is_room_for() {
  Server server(listen_on_loopback(), &echo, {.stack_bytes = 64 * kMiB});
  WaitGroup serving;
  serving.go([&server] { EXPECT_TRUE(server.serve()); });
  const auto dial_server = [&server] { return dial("tcp", to_string(server.endpoint())).value(); };

  std::vector<Conn> served;
  for (int i = 0; i < 8; ++i) {
    Conn client = dial_server();
    if (answers(client)) served.push_back(std::move(client));
  }
  EXPECT_GE(served.size(), 1u);
  EXPECT_LE(served.size(), 3u);
  while (server.connections() != served.size())
    sleep_for(1ms);  // those that were closed are counted a little later
  EXPECT_EQ(server.stats().no_memory, 8 - served.size());
  for (Conn& client : served) EXPECT_TRUE(answers(client));

  // A stack that has become free serves the next one.
  served.back().close();
  while (server.connections() == served.size()) sleep_for(1ms);
  served.back() = dial_server();
  EXPECT_TRUE(answers(served.back()));

  served.clear();
  EXPECT_TRUE(server.shutdown(kNoDeadline));
  serving.wait();
}

TEST(LimitedAddressSpace, ConnectionsWithoutAStackAreClosedAndCounted) {
  const auto ended = in_fork([] {
    tuza::testing::limit_address_space(320 * kMiB);
    const int status = run(RunOptions{.max_procs = 2}, &serve_more_than_there_is_room_for);
    ::_exit(::testing::Test::HasFailure() ? 9 : status);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
  EXPECT_TRUE(ended.said_this("no memory for another connection's goroutine; it is closed")) << ended.said;
}

// One direction of relay() runs on the caller's stack, the other needs another one.
TEST(LimitedAddressSpace, ARelayWithoutAStackIsAnError) {
  const auto ended = in_fork([] {
    tuza::testing::limit_address_space(320 * kMiB);
    const int status = run(RunOptions{.max_procs = 2}, [] {
      MemoryNetwork network;
      MemoryNetwork::Pair left = network.pair().value(), right = network.pair().value();
      WaitGroup group;
      Latch end(1);
      Result<void> started;
      while (started) {
        group.add(1);
        started = try_go({}, [&] {
          end.wait();
          group.done();
        });
      }
      group.done();
      EXPECT_TRUE(relay(left.server, right.client).error().is(std::errc::not_enough_memory));
      end.count_down();
      group.wait();
    });
    ::_exit(::testing::Test::HasFailure() ? 9 : status);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza::net::testing
