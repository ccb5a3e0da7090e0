// How often descriptors call kqueue: system calls that epoll needs, and kqueue does not.
#include <tuza/netpoll/tests/kqueue/kqueue_faults.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

namespace tuza::net::testing {
namespace {

TEST(KqueueCallsTest, AConnectionCallsOnceUnlessItWaitsForRoomAndNotForItsEnd) {
  run_with(1, [] {
    const int before = kqueue_faults::changes();
    LocalPair pair = local_pair();
    EXPECT_EQ(kqueue_faults::changes() - before, 2) << "one for each end";
    WaitGroup group;
    group.go([&] { EXPECT_EQ(read_some(*pair.here), "x"); });
    wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_TRUE(pair.there->write_all(bytes("x")));
    group.wait();
    EXPECT_EQ(kqueue_faults::changes() - before, 2);

    fill(*pair.here);
    group.go([&] { EXPECT_TRUE(pair.here->write_all(bytes("y")).error().closed()); });
    wait_until_parked(1, WaitReason::kIoWrite);
    EXPECT_EQ(kqueue_faults::changes() - before, 3) << "the write filter";
    pair.here->close();
    group.wait();
    pair.here.reset();
    pair.there.reset();
    EXPECT_EQ(kqueue_faults::changes() - before, 3) << "close(2) alone ends the registrations";
  });
}

// The end of a stream does not wait for a thread that looks at the socket meanwhile, nor for the next event.
TEST(KqueueCallsTest, ThePeerSeesTheEndOfASocketThatIsOnlyClosed) {
  run_with(2, [] {
    for (int i = 0; i < scaled(300); ++i) {
      LocalPair pair = local_pair();
      WaitGroup group;
      group.go([&] { EXPECT_EQ(read_some(*pair.there), ""); });
      if (i % 2 == 0) wait_until_parked(1, WaitReason::kIoRead);
      pair.here.reset();
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza::net::testing
