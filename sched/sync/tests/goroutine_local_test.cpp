// GoroutineLocal: one value per goroutine, created on first use, destroyed however the goroutine ends.
#include <tuza/sched/sync/error_group.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/goroutine_local.h>
#include <tuza/sched/sync/scope.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

class GoroutineLocalTest : public WithProcs {};
TUZA_WITH_PROCS(GoroutineLocalTest);

std::atomic<int> g_living{0};
struct CountedValue {
  CountedValue() { ++g_living; }
  CountedValue(const CountedValue&) = delete;
  CountedValue& operator=(const CountedValue&) = delete;
  ~CountedValue() { --g_living; }
  int value = 0;
};

const GoroutineLocal<CountedValue> g_counted;
const GoroutineLocal<std::string> g_name([] { return std::string("nobody"); });

// Joined goroutines may still have to end.
void expect_none_living() {
  testing::yield_until([] { return g_living == 0; });
}

TEST_P(GoroutineLocalTest, EachGoroutineHasItsOwn) {
  run_with(GetParam(), [] {
    *g_name = "main";
    WaitGroup group;
    for (int i = 0; i < scaled(200) + 2; ++i) {
      group.go([i] {
        EXPECT_FALSE(g_counted.has_value())
            << "nothing is inherited, nor left by the last user of the record";
        EXPECT_EQ(*g_name, "nobody");
        g_counted->value = i;
        *g_name = std::to_string(i);
        yield();
        EXPECT_EQ(g_counted->value, i);
        EXPECT_EQ(g_name.get(), std::to_string(i));
      });
    }
    group.wait();
    EXPECT_EQ(*g_name, "main");
    expect_none_living();
  });
}

TEST_P(GoroutineLocalTest, ValuesGoHoweverTheGoroutineEnds) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < scaled(100) + 4; ++i) {
      group.go([i] {
        ++g_counted->value;
        if (i % 3 == 1) goexit();
        try {
          if (i % 3 == 2) throw std::runtime_error("caught below");
        } catch (const std::runtime_error&) {
          ++g_counted->value;
        }
      });
    }
    group.wait();
    expect_none_living();
  });
  run_with(GetParam(), [] { ++g_counted->value; });
  EXPECT_EQ(g_living, 0) << "the main goroutine's go before run() returns";
}

TEST_P(GoroutineLocalTest, TheYoungestGoesFirstAndMayUseTheOthers) {
  run_with(GetParam(), [] {
    static std::vector<int> order;
    static std::atomic<int> ended{0};
    order.clear();
    ended = 0;
    struct Old {
      int number = 1;
      ~Old() {
        order.push_back(number);
        ++ended;
      }
    };
    static const GoroutineLocal<Old> old;
    struct Young {
      bool parks = false;
      ~Young() {
        if (parks) yield();
        order.push_back(10 + old->number);
      }
    };
    static const GoroutineLocal<Young> young;
    WaitGroup group;
    group.go([] {
      old->number = 2;
      young->parks = true;
    });
    group.wait();
    testing::yield_until([] { return ended == 1; });
    EXPECT_EQ(order, (std::vector<int>{12, 2}));
    group.go([] { young->parks = false; });  // makes `old` while it is destroyed
    group.wait();
    testing::yield_until([] { return ended == 2; });
    EXPECT_EQ(order, (std::vector<int>{12, 2, 11, 1}));
  });
}

TEST_P(GoroutineLocalTest, ResetAndThrowingMakers) {
  run_with(GetParam(), [] {
    bool fail = true;
    const GoroutineLocal<int> number([&] { return fail ? throw std::runtime_error("no") : 7; });
    EXPECT_THROW((void)number.get(), std::runtime_error);
    EXPECT_FALSE(number.has_value());
    fail = false;
    EXPECT_EQ(*number, 7);
    *number = 8;
    EXPECT_EQ(*number, 8);
    number.reset();
    number.reset();
    EXPECT_FALSE(number.has_value());
    EXPECT_EQ(*number, 7);
  });
}

TEST(GoroutineLocalDeathTest, MisuseIsCaught) {
  EXPECT_DEATH((void)g_name.get(), "GoroutineLocal on a thread that is not a goroutine");
  static int depth = 0;
  static const GoroutineLocal<int> once([] { return depth++ == 0 ? *once : 1; });
  EXPECT_DEATH(run_with(1, [] { (void)*once; }),
               "the initializer of a GoroutineLocal used the same GoroutineLocal");
}

// -- Groups. A value refers to what is around the group's wait, and takes its time to go.

struct SlowTally {
  std::vector<int>* into = nullptr;
  ~SlowTally() {
    for (int i = 0; i < 20; ++i) yield();
    sleep_for(std::chrono::microseconds(200));
    if (into != nullptr) into->push_back(1);
  }
};
const GoroutineLocal<SlowTally> g_tally;

enum class EndsBy { kReturn, kGoexit, kException };

// Starts a goroutine by start(function), waits by the end of start's group, and counts what its value has left.
template <class InGroup>
void expect_gone_when_the_group_ends(const InGroup& in_group) {
  for (const EndsBy how : {EndsBy::kReturn, EndsBy::kGoexit, EndsBy::kException}) {
    for (int round = 0; round < scaled(20) + 2; ++round) {
      std::vector<int> results;
      try {
        in_group([&results, how] {
          g_tally->into = &results;
          if (how == EndsBy::kGoexit) goexit();
          if (how == EndsBy::kException) throw std::runtime_error("expected");
        });
      } catch (const std::runtime_error&) {
        EXPECT_EQ(how, EndsBy::kException);
      } catch (const std::future_error&) {
        EXPECT_EQ(how, EndsBy::kGoexit);
      }
      ASSERT_EQ(results.size(), 1U) << "ended by " << static_cast<int>(how);
    }
  }
}

TEST_P(GoroutineLocalTest, ValuesAreGoneWhenAScopeEnds) {
  run_with(GetParam(), [] {
    expect_gone_when_the_group_ends([](auto function) {
      Scope scope;
      scope.go(function);
    });
    expect_gone_when_the_group_ends([](auto function) {
      Scope scope;
      scope.go(function);
      scope.join();
    });
  });
}

TEST_P(GoroutineLocalTest, ValuesAreGoneWhenAnErrorGroupEnds) {
  run_with(GetParam(), [] {
    expect_gone_when_the_group_ends([](auto function) {
      ErrorGroup group;
      group.go(function);
      EXPECT_TRUE(group.wait());
    });
    expect_gone_when_the_group_ends([](auto function) {
      ErrorGroup group;
      EXPECT_TRUE(group.try_go(function));
    });
  });
}

TEST_P(GoroutineLocalTest, ValuesAreGoneWhenAWaitGroupEnds) {
  run_with(GetParam(), [] {
    expect_gone_when_the_group_ends([](auto function) {
      WaitGroup group;
      group.go([function] {
        try {
          function();
        } catch (const std::runtime_error&) {
        }
      });
      group.wait();
    });
  });
}

TEST_P(GoroutineLocalTest, ValuesAreGoneWhenAFutureIsReady) {
  run_with(GetParam(), [] {
    expect_gone_when_the_group_ends([](auto function) { async(function).get(); });
    expect_gone_when_the_group_ends([](auto function) { async([function] { return function(), 1; }).get(); });
    expect_gone_when_the_group_ends([](auto function) {
      Future<void> future = async(function);
      yield_until([&future] { return future.ready(); });
      future.get();
    });
  });
}

TEST_P(GoroutineLocalTest, ValuesOfTheStarterStayIfAFunctionCannotBeCopied) {
  run_with(GetParam(), [] {
    struct Uncopied {
      Uncopied() = default;
      Uncopied(const Uncopied&) { throw std::runtime_error("expected"); }
      void operator()() const {}
    };
    *g_name = "starter";
    const Uncopied function;
    WaitGroup group;
    EXPECT_THROW(group.go(function), std::runtime_error);
    group.wait();
    Scope scope;
    EXPECT_THROW(scope.go(function), std::runtime_error);
    ErrorGroup errors;
    EXPECT_THROW(errors.go(function), std::runtime_error);
    EXPECT_TRUE(errors.wait());
    EXPECT_THROW((void)async(function), std::runtime_error);
    EXPECT_EQ(*g_name, "starter");
  });
}

}  // namespace
}  // namespace tuza
