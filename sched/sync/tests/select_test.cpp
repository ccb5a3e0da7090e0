// select: the facts of Go's specification, one by one; fairness; and the additions of C++.
#include <tuza/sched/blocking.h>
#include <tuza/sched/external.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/tests/chan_testing.h>
#include <tuza/sched/sync/tests/counting_new.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class SelectTest : public WithProcs {};
TUZA_WITH_PROCS(SelectTest);

TEST_P(SelectTest, TheExamplesInTheHeaderWork) {
  run_with(GetParam(), [] {
    Chan<int> jobs{1}, quit{1};
    Chan<std::string> results{1};
    auto [context, cancel] = with_cancel(Context::background());
    std::vector<std::string> log;
    const std::string result = "r";
    const auto once = [&] {
      return tuza::select(
          tuza::on_recv(jobs, [&](std::optional<int> job) { log.push_back(job ? "job" : "end"); }),
          tuza::on_send(results, result, [&] { log.push_back("sent"); }),
          tuza::on_done(context, [&] { log.push_back("done"); }),
          tuza::on_timeout(1h, [&] { log.push_back("late"); }));
    };
    EXPECT_EQ(once(), 1u);
    jobs.send(1);
    EXPECT_EQ(once(), 0u);
    cancel();
    EXPECT_EQ(once(), 2u);
    EXPECT_EQ(log, (std::vector<std::string>{"sent", "job", "done"}));
    EXPECT_EQ(results.recv(), "r");

    std::optional<int> job;
    jobs.send(7);
    switch (select(on_recv(jobs, job), on_recv(quit))) {
      case 0: EXPECT_EQ(job, 7); break;
      default: ADD_FAILURE();
    }

    std::vector<Chan<int>> inputs(3);
    const auto take = [&](std::optional<int> x) { job = x; };
    std::vector<decltype(on_recv(inputs[0], take))> cases;
    for (auto& in : inputs) cases.push_back(on_recv(in, take));
    WaitGroup group;
    group.go([&] { inputs[2].send(9); });
    EXPECT_EQ(select(cases), 2u);
    EXPECT_EQ(job, 9);
    group.wait();
  });
}

TEST_P(SelectTest, OtherwiseComesOnlyIfNothingIsReady) {
  run_with(GetParam(), [] {
    Chan<int> chan{1};
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(select(otherwise(), on_recv(chan)), 0u);
      EXPECT_EQ(select(on_send(chan, i), otherwise()), 0u);
      EXPECT_EQ(select(on_send(chan, i), otherwise()), 1u);
      EXPECT_EQ(select(otherwise(), on_recv(chan)), 1u);
    }
    EXPECT_EQ(select(otherwise()), 0u);
  });
}

TEST_P(SelectTest, AClosedChannelIsReady) {
  run_with(GetParam(), [] {
    Chan<int> chan{1}, never;
    chan.send(1);
    chan.close();
    std::optional<int> got;
    EXPECT_EQ(select(on_recv(never), on_recv(chan, got)), 1u);
    EXPECT_EQ(got, 1);
    EXPECT_EQ(select(on_recv(never), on_recv(chan, got)), 1u);
    EXPECT_EQ(got, std::nullopt);
  });
}

TEST_P(SelectTest, ClosingEndsSelectsThatWait) {
  run_with(GetParam(), [] {
    Chan<int> a, b;
    int written = 0;
    WaitGroup group;
    for (int i = 0; i < 5; ++i) {
      group.go([&] {
        std::optional<int> got = 1;
        EXPECT_EQ(select(on_recv(a), on_recv(b, got)), 1u);
        EXPECT_EQ(got, std::nullopt);
        EXPECT_EQ(written, 1);
      });
    }
    until_waiting(b, 5);
    written = 1;
    b.close();
    group.wait();
    EXPECT_EQ(waiting(a), 0u);
  });
}

TEST_P(SelectTest, NilCasesNeverCome) {
  run_with(GetParam(), [] {
    Chan<int> chan{1};
    RecvChan<int> in;
    SendChan<int> out;
    EXPECT_EQ(select(on_recv(in), on_send(out, 1), otherwise()), 2u);
    EXPECT_EQ(select(on_recv(in), on_send(out, 1), on_done(Context::background()), on_timeout(1us, [] {})),
              3u);
    out = chan;
    EXPECT_EQ(select(on_recv(in), on_send(out, 1)), 1u);
    in = chan;
    out = {};
    EXPECT_EQ(select(on_recv(in), on_send(out, 1)), 0u);
  });
}

TEST_P(SelectTest, TheShortestTimeoutEndsTheWait) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    int chosen = 0;
    EXPECT_EQ(select(on_timeout(1h, [] {}), on_recv(chan), on_timeout(1us, [&] { chosen = 1; }),
                     on_timeout(2h, [] {})),
              2u);
    EXPECT_EQ(chosen, 1);
    EXPECT_EQ(waiting(chan), 0u);
    EXPECT_EQ(select(on_timeout(-1s, [] {})), 0u);
    Chan<int> ready{1};
    ready.send(1);
    EXPECT_EQ(select(on_timeout(0s, [] {}), on_recv(ready)), 1u) << "what is ready goes before a timeout";
  });
}

TEST_P(SelectTest, ASendThatIsNotChosenLeavesTheValue) {
  run_with(GetParam(), [] {
    Chan<std::unique_ptr<int>> chan{1};
    auto value = std::make_unique<int>(1);
    EXPECT_EQ(select(on_send(chan, std::move(value)), otherwise()), 0u);
    EXPECT_EQ(value, nullptr);
    value = std::make_unique<int>(2);
    EXPECT_EQ(select(on_send(chan, std::move(value)), otherwise()), 1u);
    ASSERT_NE(value, nullptr);
    WaitGroup group;
    group.go([&] { EXPECT_EQ(select(on_send(chan, std::move(value)), on_timeout(1h, [] {})), 0u); });
    until_waiting(chan, 1);
    EXPECT_EQ(**chan.recv(), 1);
    EXPECT_EQ(**chan.recv(), 2);
    group.wait();
    EXPECT_EQ(value, nullptr);
  });
}

TEST_P(SelectTest, OneChannelMayBeInSeveralCasesAndBothDirections) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    WaitGroup group;
    for (int i = 0; i < 2; ++i) {
      group.go([&] {
        int sum = 0;
        for (int k = 0; k < scaled(1'000); ++k) {
          select(on_send(chan, 1, [&] { --sum; }), on_recv(chan, [&](std::optional<int> x) { sum += *x; }),
                 on_recv(chan, [&](std::optional<int> x) { sum += *x; }), on_send(chan, 1, [&] { --sum; }));
        }
        EXPECT_LE(std::abs(sum), scaled(1'000));
      });
    }
    group.wait();
    EXPECT_EQ(waiting(chan), 0u);
  });
}

// 8 standard deviations: less likely than a hardware fault.
void expect_uniform(std::span<const int> counts, int total) {
  const double expected = double(total) / double(counts.size());
  const double bound = 8 * std::sqrt(expected * (1 - 1 / double(counts.size())));
  for (const int n : counts) EXPECT_LT(std::abs(n - expected), bound) << n << " of " << expected;
}

TEST_P(SelectTest, EachReadyCaseHasTheSameChance) {
  run_with(GetParam(), [] {
    const int total = 6'000;
    Chan<int> a{1}, b{1}, c{1}, never;
    rt::Event event;
    event.fire();
    std::array<int, 5> counts{};
    for (int i = 0; i < total; ++i) {
      (void)a.try_send(1);
      (void)b.try_send(1);
      while (c.try_recv()) {
      }
      ++counts[select(on_recv(a), on_recv(b), on_send(c, 1), rt::on_source(event), on_recv(never))];
    }
    EXPECT_EQ(counts[4], 0);
    expect_uniform(std::span(counts).first(4), total);
  });
}

TEST(SelectTest, ThreadsChooseFairlyToo) {
  const int total = 6'000;
  Chan<int> a, b, c;
  a.close();
  b.close();
  c.close();
  std::array<int, 3> counts{};
  for (int i = 0; i < total; ++i) ++counts[select(on_recv(a), on_recv(b), on_recv(c))];
  expect_uniform(counts, total);
}

TEST_P(SelectTest, EventsAndContextsAreCases) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(300); ++round) {
      rt::Event event;
      Chan<int> chan;
      auto [context, cancel] = with_cancel(Context::background());
      int written = 0;
      WaitGroup group;
      group.go([&, ctx = context] {
        EXPECT_EQ(select(on_recv(chan), on_done(ctx), rt::on_source(event)), round % 2 == 0 ? 1u : 2u);
        EXPECT_EQ(written, 1);
      });
      if (round % 3 == 0) yield();
      written = 1;
      round % 2 == 0 ? cancel() : (void)event.fire();
      group.wait();
      EXPECT_EQ(waiting(chan), 0u);
    }
  });
}

TEST_P(SelectTest, FunctionsMayThrowExitAndSelect) {
  run_with(GetParam(), [] {
    Chan<std::unique_ptr<int>> chan{2};
    chan.send(std::make_unique<int>(1));
    EXPECT_THROW(select(on_recv(chan, [](auto v) { throw *v.value(); })), std::unique_ptr<int>::element_type);
    chan.send(std::make_unique<int>(2));
    WaitGroup group;
    group.go([&] { select(on_recv(chan, [](auto) { goexit(); })); });
    group.wait();
    chan.send(std::make_unique<int>(3));
    EXPECT_EQ(select(on_recv(chan, [&](auto) { EXPECT_EQ(select(on_recv(chan), otherwise()), 1u); })), 0u);
  });
}

TEST_P(SelectTest, ManyCasesAndSeveralTypes) {
  run_with(GetParam(), [] {
    constexpr int kMany = 100;
    std::vector<Chan<int>> chans(kMany);
    Chan<std::string> words{1};
    std::vector<std::optional<int>> got(kMany);
    using IntoInt = decltype(on_recv(chans[0], got[0]));
    std::vector<std::unique_ptr<IntoInt>> owned;
    std::vector<SelectCase*> cases;
    for (std::size_t i = 0; i < kMany; ++i) {
      owned.push_back(std::make_unique<IntoInt>(on_recv(chans[i], got[i])));
      cases.push_back(owned.back().get());
    }
    const std::string text = "text";
    auto send_word = on_send(words, text);
    cases.push_back(&send_word);
    EXPECT_EQ(select(cases), static_cast<std::size_t>(kMany));
    EXPECT_EQ(words.recv(), text);
    cases.pop_back();
    WaitGroup group;
    group.go([&] {
      for (int i = 0; i < kMany; ++i) chans[static_cast<std::size_t>(i * 37 % kMany)].send(i);
    });
    for (int i = 0; i < kMany; ++i) EXPECT_EQ(select(cases), static_cast<std::size_t>(i * 37 % kMany));
    for (int i = 0; i < kMany; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i * 37 % kMany)], i);
    group.wait();
  });
}

// All goroutines select over the same channels, each in its own order: the locks must not form a cycle, and
// exactly one case of each select must happen.
TEST_P(SelectTest, ManyMeetAndNothingIsLost) {
  run_with(GetParam(), [] {
    Chan<int> a, b{1}, c;
    std::atomic<long> sent{0}, received{0};
    std::atomic<int> left{4};
    Chan<int> stop;
    WaitGroup group;
    const auto one = [&](int i) {
      const auto take = [&](std::optional<int> x) { received += *x; };
      const auto add = [&sent](int x) { return [&sent, x] { sent += x; }; };
      for (int k = 1; k <= scaled(2'000); ++k) {
        const int x = i * 10'000 + k;
        i % 2 == 0 ? select(on_recv(a, take), on_send(b, x, add(x)), on_recv(c, take), on_send(c, x, add(x)))
                   : select(on_send(c, x, add(x)), on_recv(b, take), on_recv(c, take), on_send(a, x, add(x)));
      }
      if (--left == 0) stop.close();
      for (bool stopped = false; !stopped;) {  // every unfinished goroutine finds a partner
        select(on_recv(stop, [&] { stopped = true; }), on_recv(a, take), on_recv(c, take), on_recv(b, take),
               on_send(b, 1, add(1)), on_send(a, 2, add(2)), on_send(c, 3, add(3)));
      }
    };
    for (int i = 0; i < 3; ++i) group.go([&one, i] { one(i); });
    std::thread thread([&, promise = ExternalWaker()] { one(3); });
    group.wait();
    blocking([&] { thread.join(); });
    while (const auto x = b.try_recv()) received += *x;
    EXPECT_EQ(sent.load(), received.load());
    for (const Chan<int>* chan : {&a, &b, &c, &stop}) EXPECT_EQ(waiting(*chan), 0u);
  });
}

// A timeout, the end of a context and a sender at about the same time: exactly one of them wins.
TEST_P(SelectTest, RacesWithTimeoutsLoseNothing) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(2'000); ++round) {
      auto a = std::make_unique<Chan<int>>();
      auto b = std::make_unique<Chan<int>>();
      auto [context, cancel] = with_cancel(Context::background());
      std::size_t chosen = 9, sent = 9;
      WaitGroup group;
      group.go([&, ctx = context] {
        chosen = select(on_recv(*a), on_recv(*b), on_done(ctx), on_timeout(round % 3 == 0 ? 1us : 1h, [] {}));
      });
      group.go([&, ctx = context] { sent = select(on_send(*a, 1), on_send(*b, 2), on_done(ctx)); });
      group.go([&] { cancel(); });
      group.wait();
      EXPECT_EQ(chosen < 2 ? chosen : 2, sent) << chosen;
      a.reset();
      b.reset();
    }
  });
}

TEST_P(SelectTest, NothingIsAllocated) {
  if (!testing::kCountsAllocations) GTEST_SKIP();
  run_with(GetParam(), [] {
    Chan<int> a, b, back{1};
    WaitGroup group;
    group.go([&] {
      for (bool open = true; open;) {
        select(on_recv(a, [&](std::optional<int> x) { x ? back.send(*x) : (void)(open = false); }),
               on_recv(b, [&](std::optional<int> x) { back.send(*x); }), on_timeout(1h, [] {}));
      }
    });
    std::uint64_t before = 0;
    for (int i = 0; i < 200; ++i) {
      if (i == 100) before = testing::allocations();
      select(on_send(a, i), on_send(b, i));
      EXPECT_EQ(back.recv(), i);
      EXPECT_EQ(select(on_recv(back), otherwise()), 1u);
    }
    EXPECT_EQ(testing::allocations(), before);
    a.close();
    group.wait();
  });
}

TEST_P(SelectTest, TheLongestOfTimeoutsIsNoTimeout) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    go([&chan] { chan.send(1); });
    EXPECT_EQ(select(on_recv(chan), on_timeout(std::chrono::hours::max(), [] {})), 0u);
    go([&chan] { chan.send(1); });
    EXPECT_EQ(select(on_recv(chan), on_timeout(std::chrono::duration<double>(1e300), [] {})), 0u);
    Mutex mutex;
    mutex.lock();
    go([&mutex] { mutex.unlock(); });
    EXPECT_TRUE(mutex.try_lock_for(std::chrono::hours::max()));
    mutex.unlock();
  });
}

}  // namespace
}  // namespace tuza
