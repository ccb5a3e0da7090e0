// A deadline that may be moved at any moment, even the moment it passes.
#include <tuza/netpoll/poll/deadline.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/external.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/sched.h>

#include <deque>
#include <thread>

namespace tuza::net::testing {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kHour = 3'600'000 * kMillisecond;

class DeadlineTest : public WithProcs {};
TUZA_WITH_PROCS(DeadlineTest);

struct Watched {
  std::atomic<int> expiries{0};
  Deadline deadline{[](void* self) { ++static_cast<Watched*>(self)->expiries; }, this};
};

// A deadline with no other use. It is never destroyed, just as a descriptor is not: its timer may be firing.
Watched& watched() {
  static std::deque<Watched> all;
  return all.emplace_back();
}

std::int64_t in(std::int64_t ns) { return rt::now_ns() + ns; }

TEST_P(DeadlineTest, ExpiresOnceWhenItHasPassedAndNotEarlier) {
  run_with(GetParam(), [] {
    Watched& w = watched();
    EXPECT_FALSE(w.deadline.expired()) << "there is none at first";
    for (int i = 1; i <= 5; ++i) {
      const std::int64_t when = in(2 * kMillisecond);
      w.deadline.set(when);
      yield_until([&] { return w.deadline.expired(); });
      EXPECT_GE(rt::now_ns(), when);
      yield_until([&] { return w.expiries == i; });
    }
  });
}

TEST_P(DeadlineTest, OneInThePastExpiresInTheCall) {
  run_with(GetParam(), [] {
    Watched& w = watched();
    w.deadline.set(1);
    EXPECT_TRUE(w.deadline.expired());
    EXPECT_EQ(w.expiries, 1);
    w.deadline.set(in(kHour));
    EXPECT_FALSE(w.deadline.expired()) << "a later one makes it good again";
    w.deadline.set(1);
    EXPECT_TRUE(w.deadline.expired());
    w.deadline.set(Deadline::kNone);
    EXPECT_FALSE(w.deadline.expired()) << "and so does none";
    EXPECT_EQ(w.expiries, 2);
  });
}

TEST_P(DeadlineTest, MovingItLaterCostsNoTimerUntilTheOldOneFires) {
  run_with(GetParam(), [] {
    Watched& w = watched();
    const auto first_timer = [] { return rt::active()->next_timer_ns(); };
    const std::int64_t soon = in(20 * kMillisecond);
    const std::int64_t late = in(kHour);
    w.deadline.set(soon);
    w.deadline.set(late);
    // The armed timer is left alone. When it fires it checks again, and arms itself for the new time.
    const std::int64_t seen = first_timer();
    EXPECT_TRUE(seen == soon || rt::now_ns() > soon) << "armed anew for each deadline";
    yield_until([&] { return first_timer() == late; });
    EXPECT_GE(rt::now_ns(), soon);
    EXPECT_FALSE(w.deadline.expired());
    EXPECT_EQ(w.expiries, 0);
  });
}

TEST_P(DeadlineTest, MovingItEarlierTakesEffect) {
  run_with(GetParam(), [] {
    Watched& w = watched();
    w.deadline.set(in(kHour));
    w.deadline.set(in(kMillisecond));
    yield_until([&] { return w.deadline.expired(); });
    yield_until([&] { return w.expiries == 1; });  // the M that fires marks it first and calls then
    for (int i = 0; i < 100; ++i) yield();
    EXPECT_EQ(w.expiries, 1);
  });
}

TEST_P(DeadlineTest, OneTakenAwayDoesNotExpire) {
  run_with(GetParam(), [] {
    Watched& taken = watched();
    Watched& cleared = watched();
    Watched& later = watched();
    const std::int64_t when = in(2 * kMillisecond);
    taken.deadline.set(when);
    cleared.deadline.set(when);
    taken.deadline.set(Deadline::kNone);
    cleared.deadline.clear();
    // If the machine stood still between the calls, both deadlines have expired, and there is nothing to
    // check.
    if (rt::now_ns() >= when) return;
    later.deadline.set(when + kMillisecond);
    yield_until([&] { return later.deadline.expired(); });
    EXPECT_EQ(taken.expiries, 0);
    EXPECT_EQ(cleared.expiries, 0);
    EXPECT_FALSE(taken.deadline.expired());
    // Both can be used again.
    taken.deadline.set(in(kMillisecond));
    cleared.deadline.set(in(kMillisecond));
    yield_until([&] { return taken.deadline.expired() && cleared.deadline.expired(); });
  });
}

// Moved back and forth around the moment it passes, by two goroutines, against the timer. Whatever happens in
// between, the last setting counts: one hour ahead must not expire, and then a near deadline must expire.
TEST_P(DeadlineTest, TheLastSettingCountsHoweverItRacesWithTheTimer) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      Watched& w = watched();
      std::atomic<bool> begin{false};
      std::thread other([&, promise = ExternalWaker()] {
        while (!begin) std::this_thread::yield();
        for (int i = 0; i < 20; ++i) w.deadline.set(in(i % 3 == 0 ? 200 : 20'000));
      });
      begin = true;
      for (int i = 0; i < 20; ++i) {
        w.deadline.set(in(i % 2 == 0 ? 50'000 : 100));
        if (i % 5 == 0) yield();
      }
      other.join();
      w.deadline.set(in(kHour));
      ASSERT_FALSE(w.deadline.expired());
      for (int i = 0; i < 10; ++i) yield();
      ASSERT_FALSE(w.deadline.expired()) << "an old timer expired a new deadline";
      w.deadline.set(in(1'000));
      yield_until([&] { return w.deadline.expired(); });
    }
  });
}

// -- On a descriptor.

TEST_P(DeadlineTest, TheTwoDirectionsOfADescriptorAreIndependent) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    pair.here->set_deadline(Descriptor::Side::kRead, 1);
    EXPECT_EQ(read_some(*pair.here), "<read: deadline exceeded>");
    EXPECT_TRUE(pair.here->write_all(bytes("out")));
    EXPECT_EQ(read_some(*pair.there), "out");
    pair.here->set_deadline(Descriptor::Side::kRead, Deadline::kNone);
    pair.here->set_deadline(Descriptor::Side::kWrite, 1);
    EXPECT_TRUE(pair.here->write_all(bytes("out")).error().timeout());
    EXPECT_TRUE(pair.there->write_all(bytes("in")));
    EXPECT_EQ(read_some(*pair.here), "in");
  });
}

TEST_P(DeadlineTest, WakesAGoroutineThatWaitsAlreadyAlsoWhenItWasMoved) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    const auto set = [&pair](std::int64_t when) { pair.here->set_deadline(Descriptor::Side::kRead, when); };
    for (int i = 0; i < 4; ++i) {
      set(in(kHour));
      WaitGroup group;
      group.go([&pair] { EXPECT_EQ(read_some(*pair.here), "<read: deadline exceeded>"); });
      wait_until_parked(1, WaitReason::kIoRead);
      if (i % 2 == 1) set(in(2 * kHour));
      set(i < 2 ? in(kMillisecond) : 1);
      group.wait();
    }
    set(Deadline::kNone);
    EXPECT_TRUE(pair.there->write_all(bytes("still there")));
    EXPECT_EQ(read_some(*pair.here), "still there");
  });
}

TEST_P(DeadlineTest, TakenAwayInTheLastMomentItDoesNotEndTheWait) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    for (int i = 0; i < scaled(200); ++i) {
      WaitGroup group;
      group.go([&pair] {
        std::byte got{};
        Result<std::size_t> n = pair.here->read(std::span(&got, 1));
        // The deadline may have passed first; but once it is cleared, a read succeeds as before.
        while (!n) {
          ASSERT_TRUE(n.error().timeout());
          yield();
          n = pair.here->read(std::span(&got, 1));
        }
        EXPECT_EQ(got, std::byte{'x'});
      });
      wait_until_parked(1, WaitReason::kIoRead);
      pair.here->set_deadline(Descriptor::Side::kRead, in(i % 40 * 1'000));
      for (int n = 0; n < i % 7; ++n) yield();
      pair.here->set_deadline(Descriptor::Side::kRead, Deadline::kNone);
      ASSERT_TRUE(pair.there->write_all(bytes("x")));
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza::net::testing
