// The child of a fork that calls exit(): it destroys the statics of the program, and takes nothing from its
// parent.
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tests/raw_socket.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/time/sleep.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

// TSan does not hold the locks of its allocator across fork(): the child may find one locked, and waits for ever.
#if !defined(TUZA_TSAN)
namespace tuza::net::testing {
namespace {

using tuza::testing::Ended;
using tuza::testing::in_fork;

struct Sockets {
  // Like a service manager's socket: the poller has to be told of it.
  Listener listener = Listener::adopt(RawSocket::listening(100).release()).value();
  TcpPair pair = connect(listener);
  Server server{listen_on_loopback(), &echo};
};
// A static, which the child destroys.
std::optional<Sockets> g_sockets;

// In a process of its own, which exits with 7 if all went well.
void parent_with_children() {
  run(RunOptions{.max_procs = 2}, [] {
    Sockets& sockets = g_sockets.emplace();
    sockets.pair.client.set_read_deadline(far_away());
    std::string got;
    std::optional<Conn> accepted;
    WaitGroup waiters;
    waiters.go([&] { got = read_some(sockets.pair.client); });
    go([&] { (void)sockets.server.serve(); });
    Conn to_server = dial("tcp", sockets.server.address()).value();
    EXPECT_TRUE(answers(to_server));
    for (int i = 0; i < 3; ++i) {
      const Ended ended = in_fork([] { std::exit(6); });
      EXPECT_TRUE(ended.with_code(6)) << ended.status << ended.said;
    }
    // No goroutine was woken, no connection was ended, and the poller still watches all of them.
    EXPECT_EQ(goroutines_waiting(WaitReason::kIoRead), 3u);
    waiters.go([&] { accepted = sockets.listener.accept().value(); });
    wait_until_parked(4, WaitReason::kIoRead);
    EXPECT_TRUE(sockets.pair.server.write_all(std::string_view("still here")));
    const Conn another = dial("tcp", sockets.listener.address()).value();
    waiters.wait();
    EXPECT_EQ(got, "still here");
    EXPECT_TRUE(answers(to_server));
  });
  ::_exit(::testing::Test::HasFailure() ? 9 : 7);
}

TEST(ForkedChild, ExitsWithoutTellingPeersOrThePoller) {
  const Ended ended = in_fork(&parent_with_children);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza::net::testing
#endif

#if defined(TUZA_ASAN)
// The child of a fork lacks the threads that hold references to memory; LeakSanitizer would report it as
// leaked.
extern "C" int __lsan_is_turned_off() { return tuza::rt::is_forked_child() ? 1 : 0; }
#endif
