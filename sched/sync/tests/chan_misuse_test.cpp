// Misuse of channels and select, detected in every build: the process ends with a message that names the
// misuse.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/tests/chan_testing.h>
#include <tuza/sched/tests/testing.h>

#include <memory>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

void alone(const std::function<void()>& body) {
  run(RunOptions{.max_procs = 1}, [&body] { body(); });
}

TEST(ChanMisuse, SendingOnAClosedChannel) {
  EXPECT_DEATH(alone([] {
                 Chan<int> chan{1};
                 chan.close();
                 chan.send(1);
               }),
               "send on closed channel");
  EXPECT_DEATH(alone([] {
                 Chan<int> chan{1};
                 chan.close();
                 (void)chan.try_send(1);
               }),
               "send on closed channel");
  EXPECT_DEATH(alone([] {
                 Chan<int> chan{1};
                 chan.close();
                 select(on_send(chan, 1), otherwise());
               }),
               "send on closed channel");
}

TEST(ChanMisuse, ClosingBeforeASenderThatWaits) {
  EXPECT_DEATH(alone([] {
                 Chan<int> chan;
                 go({.name = "sender"}, [&] { chan.send(1); });
                 until_waiting(chan, 1);
                 chan.close();
                 until_waiting(chan, 1);
               }),
               "send on closed channel(.|\n)*goroutine [0-9]+ .*sender");
  EXPECT_DEATH(alone([] {
                 Chan<int> chan, other;
                 go([&] { select(on_send(chan, 1), on_recv(other)); });
                 until_waiting(chan, 1);
                 chan.close();
                 until_waiting(chan, 1);
               }),
               "send on closed channel");
}

TEST(ChanMisuse, ClosingTwiceOrNil) {
  EXPECT_DEATH(alone([] {
                 Chan<int> chan;
                 chan.close();
                 chan.close();
               }),
               "close of closed channel");
  EXPECT_DEATH(alone([] { SendChan<int>().close(); }), "close of nil channel");
}

TEST(ChanMisuse, DestroyingItWithWaiters) {
  EXPECT_DEATH(
      alone([] {
        auto chan = std::make_unique<Chan<int>>();
        go({.name = "reader"}, [&chan] { chan->recv(); });
        until_waiting(*chan, 1);
        chan.reset();
      }),
      "Chan destroyed while goroutines wait for it: goroutine [0-9]+ \\(reader\\) \\[chan receive\\]");
  EXPECT_DEATH(
      {
        auto chan = std::make_unique<Chan<int>>();
        std::thread thread([&] { chan->send(1); });
        until_waiting(*chan, 1);
        chan.reset();
      },
      "Chan destroyed while goroutines wait for it: a thread");
}

TEST(ChanMisuse, WaitingForEver) {
  EXPECT_EXIT(alone([] { RecvChan<int>().recv(); }), ::testing::ExitedWithCode(2), "chan \\(nil chan\\)");
  EXPECT_EXIT(alone([] { SendChan<int>().send(1); }), ::testing::ExitedWithCode(2), "chan \\(nil chan\\)");
  EXPECT_EXIT(alone([] { Chan<int>().recv(); }), ::testing::ExitedWithCode(2), "chan receive");
  EXPECT_EXIT(alone([] { Chan<int>().send(1); }), ::testing::ExitedWithCode(2), "chan send");
  EXPECT_EXIT(alone([] { select(); }), ::testing::ExitedWithCode(2), "select \\(no cases\\)");
  EXPECT_EXIT(alone([] { select(on_recv(RecvChan<int>()), on_send(SendChan<int>(), 1)); }),
              ::testing::ExitedWithCode(2), "select \\(no cases\\)");
  EXPECT_EXIT(alone([] {
                Chan<int> chan;
                select(on_recv(chan));
              }),
              ::testing::ExitedWithCode(2), "\\[select");
}

TEST(ChanMisuse, CasesThatCannotBe) {
  EXPECT_DEATH(alone([] { select(otherwise(), otherwise()); }), "more than one otherwise");
  EXPECT_DEATH(alone([] {
                 Chan<int> chan;
                 auto c = on_recv(chan);
                 std::vector<SelectCase*> twice{&c, &c};
                 select(twice);
               }),
               "already in use by another select");
  EXPECT_DEATH(Chan<int>(~std::size_t{0}), "capacity out of range");
}

}  // namespace
}  // namespace tuza
