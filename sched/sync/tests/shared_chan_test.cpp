// make_chan(): channels that belong to their handles.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/shared_chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

class SharedChanTest : public WithProcs {};
TUZA_WITH_PROCS(SharedChanTest);

SharedChan<int> count_to(int n) {
  auto numbers = make_chan<int>();
  go([numbers, n] {
    for (int i = 1; i <= n; ++i) numbers.send(i);
    numbers.close();
  });
  return numbers;
}

TEST_P(SharedChanTest, AFunctionReturnsItAndALoopKeepsIt) {
  run_with(GetParam(), [] {
    int sum = 0;
    for (auto& number : count_to(100)) sum += number;
    EXPECT_EQ(sum, 5050);
  });
}

TEST_P(SharedChanTest, HasTheOperationsOfAChannel) {
  run_with(GetParam(), [] {
    const auto chan = make_chan<std::string>(2);
    EXPECT_EQ(chan.cap(), 2u);
    chan.send("a");
    EXPECT_TRUE(chan.try_send("b"));
    EXPECT_FALSE(chan.try_send("c"));
    EXPECT_EQ(chan.len(), 2u);
    EXPECT_EQ(chan.recv(), "a");
    EXPECT_EQ(chan.try_recv(), "b");
    EXPECT_EQ(chan.try_recv().error(), TryRecvError::kEmpty);
    chan.close();
    EXPECT_EQ(chan.recv(), std::nullopt);
    EXPECT_EQ(chan.try_recv().error(), TryRecvError::kClosed);
    EXPECT_EQ(make_chan<int>().cap(), 0u);
  });
}

TEST_P(SharedChanTest, IsACaseOfSelectInBothDirections) {
  run_with(GetParam(), [] {
    std::vector<SharedChan<int>> chans;
    for (int i = 0; i < 3; ++i) chans.push_back(make_chan<int>(1));
    std::optional<int> got;
    EXPECT_EQ(select(on_recv(chans[0], got), on_send(chans[1], 5)), 1u);
    EXPECT_EQ(select(on_recv(chans[1], got), otherwise()), 0u);
    EXPECT_EQ(got, 5);
    std::vector<decltype(on_recv(chans[0], got))> cases;
    for (auto& chan : chans) cases.push_back(on_recv(chan, got));
    chans[2].send(7);
    EXPECT_EQ(select(cases), 2u);
    EXPECT_EQ(got, 7);
  });
}

TEST_P(SharedChanTest, TheLastHandleDestroysTheElementsThatAreLeft) {
  run_with(GetParam(), [] {
    const auto element = std::make_shared<int>(1);
    auto chan = make_chan<std::shared_ptr<int>>(1);
    chan.send(element);
    auto copy = chan;
    chan = {};
    EXPECT_EQ(element.use_count(), 2);
    EXPECT_EQ(copy.len(), 1u);
    copy = {};
    EXPECT_EQ(element.use_count(), 1);
  });
}

TEST_P(SharedChanTest, TheReceiverMayDropTheLastHandleWhileTheSenderReturns) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < scaled(2'000); ++i) {
      auto chan = make_chan<int>();
      group.go([chan] { chan.send(1); });
      group.go([chan = std::move(chan)] { EXPECT_EQ(chan.recv(), 1); });
    }
    group.wait();
  });
}

TEST_P(SharedChanTest, IsPassedAsAView) {
  run_with(GetParam(), [] {
    const auto produce = [](SendChan<int> to) {
      to.send(3);
      to.close();
    };
    const auto consume = [](RecvChan<int> from) { return from.recv().value_or(0); };
    const auto chan = make_chan<int>(1);
    produce(chan);
    EXPECT_EQ(consume(chan), 3);
  });
  static_assert(!std::is_convertible_v<SharedChan<int>, SendChan<int>>, "the view would outlive its channel");
  static_assert(!std::is_convertible_v<SharedChan<int>, RecvChan<int>>);
}

TEST(SharedChan, WithoutAChannelIsNil) {
  const SharedChan<int> nil;
  EXPECT_FALSE(nil);
  EXPECT_EQ(nil.len(), 0u);
  EXPECT_FALSE(nil.try_send(1));
  EXPECT_EQ(nil.try_recv().error(), TryRecvError::kEmpty);
  EXPECT_FALSE(static_cast<bool>(SendChan<int>(nil)));
  EXPECT_EQ(select(on_recv(nil), otherwise()), 1u);
}

TEST(SharedChan, CopiesAreEqual) {
  const auto chan = make_chan<int>(1);
  const auto copy = chan;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_TRUE(copy);
  EXPECT_EQ(copy, chan);
  EXPECT_NE(copy, make_chan<int>(1));
}

TEST(SharedChan, IsAKey) {
  const auto chan = make_chan<int>(1), other = make_chan<int>(1);
  std::set<SharedChan<int>> ordered{chan, other};
  std::unordered_set<SharedChan<int>> hashed{chan, other};
  EXPECT_FALSE(ordered.insert(chan).second);
  EXPECT_FALSE(hashed.insert(chan).second);
  EXPECT_EQ(ordered.erase(other), 1u);
  EXPECT_EQ(hashed.erase(other), 1u);
  EXPECT_TRUE(hashed.contains(chan));
  EXPECT_FALSE(hashed.contains({}));
}

}  // namespace
}  // namespace tuza
