// ResourcePool: limits, order, what ends a resource, and what callers that give up leave behind.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/resource_pool.h>
#include <tuza/sched/time/sleep.h>
#include <tuza/sched/time/tests/resource_factory.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class ResourcePoolTest : public WithProcs {};
TUZA_WITH_PROCS(ResourcePoolTest);

TEST_P(ResourcePoolTest, TheLastOneBackIsUsedFirst) {
  run_with(GetParam(), [] {
    Factory factory;
    Things pool(factory.options({}));
    {
      std::optional<Things::Lease> first = pool.acquire(kAlways).value();
      const Things::Lease second = pool.acquire(kAlways).value();
      EXPECT_EQ((**first).id, 1);
      EXPECT_EQ(second->id, 2);
      first.reset();
    }
    EXPECT_EQ(pool.stats().idle, 2u);
    EXPECT_EQ(pool.use(kAlways, [](Factory::Thing& thing) -> Result<int> { return thing.id; }).value(), 2);
    EXPECT_EQ(pool.stats().opened, 2u);
    EXPECT_EQ(pool.stats().waited, 0u);
    pool.close();
    EXPECT_EQ(factory.alive, 0);
    EXPECT_EQ(pool.stats().closed_at_end, 2u);
    EXPECT_TRUE(pool.acquire(kAlways).error().closed());
  });
}

TEST_P(ResourcePoolTest, AMovedLeaseEndsOnce) {
  run_with(GetParam(), [] {
    Factory factory;
    Things pool(factory.options({.open_max = 2}));
    Things::Lease one = pool.acquire(kAlways).value();
    Things::Lease other = pool.acquire(kAlways).value();
    one = std::move(other);
    EXPECT_EQ(one->id, 2);
    EXPECT_EQ(pool.stats().in_use, 1u);
    one.discard();
    one.discard();
    EXPECT_EQ(pool.stats().in_use, 0u);
    EXPECT_EQ(pool.stats().closed_broken, 1u);
    EXPECT_EQ(pool.stats().idle, 1u);
  });
}

TEST_P(ResourcePoolTest, WaitersAreServedInTheirOrderAndTheWaitIsMeasured) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 1}));
    std::vector<int> order;
    WaitGroup group;
    {
      const Things::Lease lease = pool.acquire(kAlways).value();
      for (int i = 0; i < 5; ++i) {
        group.go([&, i] {
          const Things::Lease mine = pool.acquire(kAlways).value();
          order.push_back(i);
        });
        clock.settle();
      }
      EXPECT_EQ(pool.stats().waiting, 5u);
      clock.advance(2s);
    }
    group.wait();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
    EXPECT_EQ(pool.stats().waited, 5u);
    EXPECT_EQ(pool.stats().wait_time, 10s);
    EXPECT_EQ(pool.stats().waiting, 0u);
    EXPECT_EQ(factory.last, 1);
  });
}

// Otherwise an overloaded pool would serve only those whose time is just over.
TEST_P(ResourcePoolTest, WhoseTimeIsTooShortIsPassedOver) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 1}));
    for (int i = 0; i < 20; ++i) {
      const Things::Lease use = pool.acquire(kAlways).value();
      clock.advance(100ms);
    }
    std::optional<Things::Lease> held = pool.acquire(kAlways).value();
    std::string order;
    WaitGroup group;
    const auto wait_for_one = [&](char name, std::chrono::milliseconds time) {
      group.go([&pool, &order, name, time] {
        const auto limited = with_timeout(kAlways, time);
        const Result<Things::Lease> mine = pool.acquire(limited.ctx());
        order += mine ? name : '-';
      });
      clock.settle();
    };
    wait_for_one('a', 120ms);
    wait_for_one('b', 1s);
    wait_for_one('c', 1s);
    held.reset();
    group.wait();
    EXPECT_EQ(order, "bca") << "a has not enough time, but enough while nobody else waits";
    held.emplace(pool.acquire(kAlways).value());
    wait_for_one('d', 120ms);
    clock.advance(150ms);
    EXPECT_EQ(order, "bca-");
  });
}

TEST_P(ResourcePoolTest, OneThatWasPassedOverMayGiveUpOrBeEndedByClose) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 1}));
    for (int i = 0; i < 20; ++i) {
      const Things::Lease use = pool.acquire(kAlways).value();
      clock.advance(100ms);
    }
    for (const bool closes : {false, true}) {
      std::optional<Things::Lease> held = pool.acquire(kAlways).value();
      std::optional<Error> error;
      WaitGroup group;
      group.go([&] {
        const auto limited = with_timeout(kAlways, 120ms);
        error = pool.acquire(limited.ctx()).error();
      });
      clock.settle();
      group.go([&] {
        const Things::Lease mine = pool.acquire(kAlways).value();
        sleep_for(200ms);
      });
      clock.settle();
      held.reset();
      clock.settle();
      EXPECT_EQ(pool.stats().waiting, 1u);
      if (closes) pool.close();
      clock.advance(150ms);
      clock.advance(150ms);
      group.wait();
      EXPECT_EQ(closes ? error->closed() : error->timeout(), true) << error->message();
      EXPECT_EQ(pool.stats().waiting, 0u);
      EXPECT_EQ(pool.stats().in_use, 0u);
    }
  });
}

// Resources come back at the moment at which the contexts of all who wait for them end.
TEST_P(ResourcePoolTest, NothingIsLostWhenAThousandGiveUpAtTheMomentOfTheirTurn) {
  run_with(GetParam(), [] {
    constexpr std::size_t kPlaces = 10;
    const int callers = scaled(1'000);
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = kPlaces, .idle_timeout = 0s}));
    std::atomic<int> got = 0, gave_up = 0;
    for (int round = 0; round < 5; ++round) {
      const auto [all, cancel] = with_timeout(kAlways, 1s);
      WaitGroup group;
      for (std::size_t i = 0; i < kPlaces; ++i) {
        group.go([&, i] {
          Things::Lease lease = pool.acquire(kAlways).value();
          sleep_for(1s);
          if (i % 3 == 0) lease.discard();
        });
      }
      clock.settle();
      for (int i = 0; i < callers; ++i) {
        group.go([&, ctx = all] {
          Result<Things::Lease> lease = pool.acquire(ctx);
          EXPECT_TRUE(lease || lease.error().timeout());
          ++(lease ? got : gave_up);
          if (lease && (*lease)->id % 4 == 0) lease->discard();
        });
      }
      group.wait();
      EXPECT_EQ(pool.stats().in_use, 0u);
      EXPECT_EQ(pool.stats().waiting, 0u);
    }
    EXPECT_EQ(got + gave_up, 5 * callers);
    std::vector<Things::Lease> all_places;
    for (std::size_t i = 0; i < kPlaces; ++i) all_places.push_back(pool.acquire(kAlways).value());
    EXPECT_LE(factory.most_alive, static_cast<int>(kPlaces));
    all_places.clear();
    pool.close();
    EXPECT_EQ(factory.alive, 0);
    EXPECT_EQ(pool.stats().open, 0u);
    EXPECT_EQ(pool.stats().opened, pool.stats().closed());
  });
}

// The same in real time, without an order of the clock's: half of the callers give up after a random time.
TEST_P(ResourcePoolTest, NothingIsLostUnderLoad) {
  run_with(GetParam(), [] {
    constexpr int kPlaces = 10;
    Factory factory;
    auto options = factory.options({.open_max = kPlaces, .idle_max = 3});
    options.check = [](const Context&, Factory::Thing& thing) { return thing.id % 7 != 0; };
    options.reset = [](Factory::Thing& thing) { return thing.id % 5 != 0; };
    Things pool(std::move(options));
    std::atomic<int> in_use = 0, got = 0, failed = 0;
    const int callers = scaled(1'000);
    WaitGroup group;
    for (int i = 0; i < callers; ++i) {
      group.go([&, i] {
        Random random(static_cast<std::uint64_t>(i));
        const bool patient = i % 2 == 0;
        const auto limited = with_timeout(kAlways, std::chrono::microseconds(random.below(5'000)));
        Result<Things::Lease> lease = pool.acquire(patient ? kAlways : limited.ctx());
        if (!lease) {
          if (patient) ++failed;
          return;
        }
        ++got;
        EXPECT_LE(++in_use, kPlaces);
        yield();
        --in_use;
        if (random.below(10) == 0) lease->discard();
      });
    }
    group.wait();
    EXPECT_EQ(failed, 0);
    EXPECT_GE(got, callers / 2);
    EXPECT_LE(factory.most_alive, kPlaces);
    EXPECT_LE(pool.stats().idle, 3u);
    EXPECT_EQ(pool.stats().open, pool.stats().idle);
    pool.close();
    EXPECT_EQ(factory.alive, 0);
    EXPECT_EQ(pool.stats().opened, pool.stats().closed());
  });
}

TEST_P(ResourcePoolTest, AFailedOpenGivesItsPlaceToTheNext) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 1}));
    std::atomic<int> refused = 0;
    std::optional<Things::Lease> lease = pool.acquire(kAlways).value();
    WaitGroup group;
    for (int i = 0; i < 5; ++i) {
      group.go([&] {
        const Result<Things::Lease> mine = pool.acquire(kAlways);
        if (!mine && mine.error().is(std::errc::connection_refused)) ++refused;
      });
    }
    clock.settle();
    factory.fails = true;
    lease->discard();
    group.wait();
    EXPECT_EQ(refused, 5);
    EXPECT_EQ(pool.stats().open_failed, 5u);
    EXPECT_EQ(pool.stats().open, 0u);
    factory.fails = false;
    EXPECT_TRUE(pool.acquire(kAlways));
  });
}

TEST_P(ResourcePoolTest, AnExceptionFreesThePlace) {
  run_with(GetParam(), [] {
    Factory factory;
    bool throws = true;
    Things pool({.open =
                     [&](const Context& ctx) {
                       if (throws) throw std::runtime_error("open");
                       return factory.open(ctx);
                     },
                 .limits = {.open_max = 1}});
    EXPECT_THROW((void)pool.acquire(kAlways), std::runtime_error);
    throws = false;
    EXPECT_THROW((void)pool.use(kAlways, [](Factory::Thing&) -> Result<int> { throw 7; }), int);
    EXPECT_EQ(pool.stats().idle, 1u) << "it came back";
    EXPECT_EQ(pool.stats().open_failed, 1u);
  });
}

TEST_P(ResourcePoolTest, WhatFailsItsCheckOrItsResetIsReplaced) {
  run_with(GetParam(), [] {
    Factory factory;
    bool usable = true, clean = true;
    auto options = factory.options({.open_max = 1});
    options.check = [&](const Context&, Factory::Thing&) { return usable; };
    options.reset = [&](Factory::Thing&) { return clean; };
    Things pool(std::move(options));
    const auto id = [&] {
      return pool.use(kAlways, [](Factory::Thing& thing) -> Result<int> { return thing.id; }).value();
    };
    EXPECT_EQ(id(), 1);
    EXPECT_EQ(id(), 1);
    usable = false;
    EXPECT_EQ(id(), 2) << "a new one is not checked";
    EXPECT_EQ(pool.stats().closed_check, 1u);
    usable = true;
    clean = false;
    EXPECT_EQ(id(), 2);
    EXPECT_EQ(pool.stats().closed_broken, 1u);
    EXPECT_EQ(id(), 3);
    EXPECT_EQ(factory.most_alive, 1) << "the old one is destroyed before the new one is opened";
  });
}

TEST_P(ResourcePoolTest, IdleOnesEndAfterTheirTimeout) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 0, .idle_max = 3, .idle_timeout = 10s}));
    std::vector<Things::Lease> leases;
    for (int i = 0; i < 5; ++i) leases.push_back(pool.acquire(kAlways).value());
    clock.advance(1min);
    EXPECT_EQ(factory.alive, 5) << "in use";
    leases.clear();
    EXPECT_EQ(factory.alive, 3);
    EXPECT_EQ(pool.stats().closed_idle_max, 2u);
    clock.advance(9s);
    (void)pool.acquire(kAlways).value();  // one is used in between
    clock.advance(1s);
    EXPECT_EQ(factory.alive, 1);
    EXPECT_EQ(pool.stats().closed_idle_timeout, 2u);
    clock.advance(9s);
    EXPECT_EQ(factory.alive, 0);
    EXPECT_EQ(pool.stats().closed_idle_timeout, 3u);
    EXPECT_EQ(pool.stats().open, 0u);
  });
}

TEST_P(ResourcePoolTest, LivesAreLimitedAndDoNotEndTogether) {
  run_with(GetParam(), [] {
    constexpr int kMany = 100;
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 0, .idle_timeout = 0s, .life_max = 1000s}));
    std::vector<Things::Lease> leases;
    for (int i = 0; i < kMany; ++i) leases.push_back(pool.acquire(kAlways).value());
    std::optional<Things::Lease> busy = std::move(leases.back());
    leases.clear();
    clock.advance(899s);
    EXPECT_EQ(factory.alive, kMany);
    clock.advance(51s);
    EXPECT_LT(factory.alive, kMany);
    EXPECT_GT(factory.alive, 1);
    clock.advance(50s);
    EXPECT_EQ(factory.alive, 1) << "in use";
    busy.reset();
    EXPECT_EQ(factory.alive, 0) << "it came back too old";
    EXPECT_EQ(pool.stats().closed_life, std::uint64_t{kMany});
  });
}

TEST_P(ResourcePoolTest, CloseEndsWaitsAndTakesBackWhatIsOut) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    std::optional<Things> pool(factory.options({.open_max = 2}));
    Things::Lease one = pool->acquire(kAlways).value();
    std::optional<Things::Lease> other = pool->acquire(kAlways).value();
    std::atomic<int> ended = 0;
    WaitGroup group;
    for (int i = 0; i < 10; ++i) {
      group.go([&] {
        EXPECT_TRUE(pool->acquire(kAlways).error().closed());
        ++ended;
      });
    }
    clock.settle();
    EXPECT_EQ(ended, 0);
    pool->close();
    pool->close();
    group.wait();
    EXPECT_EQ(factory.alive, 2);
    other.reset();
    EXPECT_EQ(factory.alive, 1);
    EXPECT_EQ(pool->stats().closed_at_end, 1u);
    EXPECT_EQ(pool->stats().open, 1u);
    pool.reset();
    EXPECT_EQ(one->id, 1) << "a lease outlives the pool";
    {
      const Things::Lease last = std::move(one);
    }
    EXPECT_EQ(factory.alive, 0);
  });
}

// A destructor may park, and ask the pool: it holds no lock. Until it has ended, it has its place.
TEST_P(ResourcePoolTest, SlowDestructorsHoldNobodyUpAndKeepTheirPlaces) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 2, .idle_timeout = 10s}));
    factory.at_end = [&] {
      sleep_for(5s);
      EXPECT_LE(pool.stats().open, 2u);
    };
    WaitGroup group;
    for (int i = 0; i < 6; ++i) {
      group.go([&] { pool.acquire(kAlways).value().discard(); });
    }
    group.wait();
    EXPECT_EQ(clock.elapsed(), 15s);
    EXPECT_EQ(factory.most_alive, 2);
    {
      const Things::Lease lease = pool.acquire(kAlways).value();
    }
    clock.advance(12s);  // the sweeper is at it
    const Things::Lease now_there = pool.acquire(kAlways).value();
    EXPECT_EQ(factory.alive, 2);
    const auto [ctx, cancel] = with_timeout(kAlways, 1s);
    EXPECT_TRUE(pool.acquire(ctx).error().timeout()) << "the one that is being destroyed has its place";
    EXPECT_TRUE(pool.acquire(kAlways)) << "then it is free";
    factory.at_end = nullptr;
  });
}

TEST_P(ResourcePoolTest, ACallerThatWaitsGetsThePlaceOfOneThatEndsOnceItHasEnded) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Factory factory;
    Things pool(factory.options({.open_max = 1, .life_max = 1s}));
    factory.at_end = [] { sleep_for(5s); };
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go([&] {
        const Things::Lease lease = pool.acquire(kAlways).value();
        sleep_for(2s);  // then it is too old
      });
    }
    group.wait();
    EXPECT_EQ(clock.elapsed(), 21s);
    EXPECT_EQ(factory.most_alive, 1);
    EXPECT_EQ(pool.stats().closed_life, 3u);
    factory.at_end = nullptr;
  });
}

TEST_P(ResourcePoolTest, ItMayBeDestroyedAfterARunThatHasLeftCallersBehind) {
  Factory factory;
  std::optional<Things> pool(factory.options({.open_max = 1}));
  std::optional<Things::Lease> lease;
  run(RunOptions{.max_procs = GetParam()}, [&] {
    {
      const Things::Lease idle = pool->acquire(kAlways).value();
    }  // its timeout is running
    lease = pool->acquire(kAlways).value();
    go([&] { (void)pool->acquire(kAlways); });
    wait_until_parked(1, WaitReason::kSemaphore);
    return 0;
  });
  EXPECT_EQ(pool->stats().waiting, 1u);
  lease.reset();
  EXPECT_EQ(pool->stats().in_use, 1u) << "given to one that was left behind";
  pool.reset();
}

}  // namespace
}  // namespace tuza
