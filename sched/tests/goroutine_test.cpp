// go(): what runs on a goroutine, and how a goroutine ends.
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/migrate.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

class GoTest : public WithProcs {};
TUZA_WITH_PROCS(GoTest);

TEST_P(GoTest, RunsEachFunctionExactlyOnce) {
  run_with(GetParam(), [] {
    std::vector<std::atomic<int>> ran(static_cast<std::size_t>(scaled(50'000)));
    WaitGroup group;
    for (auto& count : ran) group.go([&count] { ++count; });
    group.wait();
    for (const auto& count : ran) ASSERT_EQ(count.load(), 1);
  });
}

TEST_P(GoTest, MovesTheFunctionInAndDestroysItOnceAfterwards) {
  run_with(GetParam(), [] {
    struct Counted {
      explicit Counted(std::atomic<int>& count) : alive(&count) { ++*alive; }
      Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
      Counted(const Counted&) = delete;
      ~Counted() { --*alive; }
      std::atomic<int>* alive;
    };
    std::atomic<int> alive{0};
    {
      WaitGroup group;
      auto only_movable = std::make_unique<int>(41);
      int seen = 0;
      group.go([counted = Counted(alive), only_movable = std::move(only_movable), &seen] {
        if (counted.alive->load() > 0) seen = *only_movable;
      });
      group.wait();
      EXPECT_EQ(seen, 41);
    }
    testing::yield_until([&alive] { return alive.load() == 0; });
  });
}

TEST_P(GoTest, TakesFunctionsLargerThanTheRecordOfAGoroutine) {
  run_with(GetParam(), [] {
    std::array<std::uint64_t, 500> data;
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = i * i;
    for (int round = 0; round < 300; ++round) {
      WaitGroup group;
      std::atomic<bool> equal{false};
      group.go([data, &expected = data, &equal] { equal = data == expected; });
      group.wait();
      ASSERT_TRUE(equal.load());
    }
  });
}

TEST_P(GoTest, AlignsTheFunctionObject) {
  run_with(GetParam(), [] {
    struct alignas(256) Aligned {
      char bytes[256];
    };
    WaitGroup group;
    std::uintptr_t misalignment = 1;
    group.go([aligned = Aligned{}, &misalignment] {
      misalignment = reinterpret_cast<std::uintptr_t>(&aligned) % 256;
    });
    group.wait();
    EXPECT_EQ(misalignment, 0u);
  });
}

TEST_P(GoTest, AnExceptionFromMovingTheFunctionInLeavesNoGoroutineBehind) {
  run_with(GetParam(), [] {
    struct Throws {
      Throws() = default;
      Throws(const Throws&) { throw std::runtime_error("no copy"); }
      void operator()() {}
    };
    const Throws function;
    EXPECT_THROW(go(function), std::runtime_error);
    EXPECT_EQ(num_goroutine(), 1u);
  });
}

TEST_P(GoTest, GivesEachGoroutineItsOwnIdAndName) {
  run_with(GetParam(), [] {
    EXPECT_GT(goroutine_id(), 0u);
    EXPECT_EQ(goroutine_name(), "main");
    Mutex mutex;
    std::set<std::uint64_t> ids{goroutine_id()};
    WaitGroup group;
    for (int i = 0; i < 500; ++i) {
      group.go([&] {
        const std::scoped_lock lock(mutex);
        ids.insert(goroutine_id());
      });
    }
    group.wait();
    EXPECT_EQ(ids.size(), 501u);
    group.add(1);
    go({.name = "worker with a name longer than the field"}, [&group] {
      EXPECT_EQ(goroutine_name(), "worker with a name longer t");
      set_goroutine_name("other");
      EXPECT_EQ(goroutine_name(), "other");
      group.done();
    });
    group.wait();
  });
}

TEST(Go, OutsideThreadsHaveNoGoroutine) {
  EXPECT_EQ(goroutine_id(), 0u);
  EXPECT_EQ(goroutine_name(), "");
  EXPECT_EQ(num_goroutine(), 0u);
  EXPECT_EQ(max_procs(), 0);
}

TEST_P(GoTest, ExternalThreadsMaySpawnAndWake) {
  run_with(GetParam(), [] {
    const int each = scaled(5'000);
    std::atomic<int> ran{0};
    WaitGroup group;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      group.add(each);
      threads.emplace_back([&, promise = ExternalWaker()] {
        for (int i = 0; i < each; ++i) {
          go([&] {
            ++ran;
            group.done();
          });
        }
      });
    }
    group.wait();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ran.load(), 3 * each);
  });
}

TEST_P(GoTest, AHundredThousandGoroutinesWithGuardedStacksCanWait) {
  // ThreadSanitizer needs milliseconds for each stack.
  const int count = rt::kTsan ? 1'000 : rt::kAsan ? 10'000 : scaled(100'000);
  run_with(GetParam(), [count] {
    WaitGroup gate, done;
    gate.add(1);
    std::atomic<int> waiting{0};
    for (int i = 0; i < count; ++i) {
      done.go([&] {
        ++waiting;
        gate.wait();
      });
    }
    testing::yield_until([&] { return waiting.load() == count; });
    EXPECT_EQ(num_goroutine(), static_cast<std::size_t>(count) + 1);
    const rt::GPool& gs = rt::active()->gs;
    int guarded = 0;
    for (std::size_t i = 0; i < gs.count(); ++i) guarded += gs.at(i).stack.guarded ? 1 : 0;
    if (rt::active()->gs.stacks().guard_mode() == rt::StackArenas::GuardMode::kAdvise) {
      EXPECT_GE(guarded, count);
    } else {
      EXPECT_GE(guarded, std::min(count, 16'000)) << "mprotect must guard what vm.max_map_count allows";
    }
    gate.done();
    done.wait();
  });
}

// -- The end of a goroutine.

TEST_P(GoTest, GoexitRunsDestructorsAndEndsTheGoroutineOnly) {
  run_with(GetParam(), [] {
    std::vector<int> order;
    WaitGroup group;
    group.go([&order] {
      struct Note {
        std::vector<int>& order;
        int number;
        ~Note() { order.push_back(number); }
      };
      const Note first{order, 1};
      [&order] {
        const Note second{order, 2};
        goexit();
      }();
      order.push_back(3);
    });
    group.wait();
    EXPECT_EQ(order, (std::vector<int>{2, 1}));
  });
}

TEST_P(GoTest, GoexitPassesCatchAllBlocksThatRethrow) {
  run_with(GetParam(), [] {
    int caught = 0;
    WaitGroup group;
    group.go([&caught] {
      try {
        goexit();
      } catch (...) {
        ++caught;
        throw;
      }
    });
    group.wait();
    EXPECT_EQ(caught, 1);
  });
}

using GoDeathTest = WithProcs;
TUZA_WITH_PROCS(GoDeathTest);

TEST_P(GoDeathTest, GoexitThatACatchHasSwallowedEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto swallow = [] {
    try {
      goexit();
    } catch (...) {
    }
  };
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()}, swallow), "caught by a catch \\(...\\)");
}

TEST_P(GoDeathTest, AnExceptionThatLeavesAGoroutineNamesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      run(RunOptions{.max_procs = GetParam()},
          [] {
            go({.name = "careless"}, [] { throw std::runtime_error("not caught"); });
            sleep_for(std::chrono::seconds(60));
          }),
      "goroutine [0-9]+ \\(careless\\) terminated by an exception of type std::runtime_error: "
      "not caught\n  #0  [^\n]*TestBody[^\n]*\n(.*\n)*created by goroutine 1 in .*\n.*goroutine_test.cpp:");
}

// As an optimising compiler inlines every function that only go() calls.
TEST_P(GoDeathTest, AFunctionWithoutAFrameOfItsOwnIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()},
                   [] {
                     go([]() __attribute__((always_inline)) { WaitGroup().done(); });
                     sleep_for(std::chrono::seconds(60));
                   }),
               "  #0  tuza::WaitGroup::[^\n]*\n(.*\n)?  #[12]  tuza::GoDeathTest_AFunction[^\n]*TestBody"
               "[^\n]*lambda[^\n]*\ncreated by");
}

TEST_P(GoDeathTest, AReportOfMisuseBeginsWithTheCallOfTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()}, [] { WaitGroup().done(); }),
               "tuza: fatal: [^\n]*\ngoroutine 1 [^\n]*:\n  #0  tuza::WaitGroup::");
}

TEST_P(GoDeathTest, AValueThatIsAnErrorIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto take = [] {
    const Result<int> failed = std::unexpected(Error::from_errno(ENOENT, "open", "notes.txt"));
    go([failed] { (void)failed.value(); });
    sleep_for(std::chrono::seconds(60));
  };
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()}, take),
               "bad_expected_access.*: open notes.txt: No such file");
}

[[gnu::noinline]] int recurse(int depth) {
  char frame[512];
  std::fill(std::begin(frame), std::end(frame), static_cast<char>(depth));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[depth % 512];
}

TEST_P(GoDeathTest, AStackOverflowNamesTheGoroutine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()},
                   [] {
                     go({.name = "deep"}, [] { recurse(1 << 20); });
                     sleep_for(std::chrono::seconds(60));
                   }),
               "goroutine [0-9]+ \\[running\\] deep: stack overflow [^\n]*\n  #0  "
               "[^\n]*(recurse|fill|san)(.*\n)*created by goroutine 1");
}

// The function itself touches only the lower end of each frame. The compiler must probe what lies between in
// steps that are no longer than any guard. GCC for aarch64 assumes 64 KiB guards unless told otherwise.
// Each call has the address of its caller's frame: otherwise Clang makes a loop of the recursion.
[[gnu::noinline]] int recurse_in_strides(int depth, const volatile char* caller) {
  volatile char frame[60'000];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? *caller : recurse_in_strides(depth - 1, frame) + frame[0];
}

TEST_P(GoDeathTest, FramesLargerThanTheGuardDoNotStepOverIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()},
                   [] {
                     go({.name = "wide"}, [] { recurse_in_strides(1 << 10, ""); });
                     sleep_for(std::chrono::seconds(60));
                   }),
               "goroutine [0-9]+ \\[running\\] wide: stack overflow .*increase GoOptions::stack_bytes");
}

TEST_P(GoDeathTest, AStackOverflowNamesTheSettingThatApplies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()}, [] { recurse(1 << 20); }),
               "main: stack overflow .*increase RunOptions::stack_bytes");
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()},
                   [] {
                     go({.name = "worker", .stack_setting = "workers.stack"}, [] { recurse(1 << 20); });
                     sleep_for(std::chrono::seconds(60));
                   }),
               "worker: stack overflow .*increase workers.stack");
  // Large frames: ThreadSanitizer's own stack of calls has room for 65,536.
  EXPECT_DEATH(run(RunOptions{.max_procs = GetParam(), .stack_bytes = kStackBytesMax},
                   [] { recurse_in_strides(1 << 12, ""); }),
               "main: stack overflow .*the largest stack there is");
}

TEST_P(GoDeathTest, AStackThatIsLargerThanAnyIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::size_t bytes : {kStackBytesMax + 1, std::size_t{1} << 40, ~std::size_t{0}}) {
    run_with(GetParam(), [bytes] {
      EXPECT_TRUE(try_go({.stack_bytes = bytes}, [] {}).error().is(std::errc::invalid_argument));
    });
    EXPECT_DEATH(run(RunOptions{.max_procs = GetParam()}, [bytes] { go({.stack_bytes = bytes}, [] {}); }),
                 "stack_bytes is above 64 MiB");
    EXPECT_DEATH(run(RunOptions{.max_procs = GetParam(), .stack_bytes = bytes}, [] {}),
                 "stack_bytes is above 64 MiB");
  }
}

TEST_P(GoDeathTest, AStackAbove8MiBHoldsMore) {
  run_with(GetParam(), [] {
    for (const std::size_t bytes : {std::size_t{8 << 20} + 1, kStackBytesMax}) {
      WaitGroup group;
      group.add(1);
      ASSERT_TRUE(try_go({.stack_bytes = bytes}, [&] {
        EXPECT_NE(recurse(24'000), -1);  // 12 MiB and more
        group.done();
      }));
      group.wait();
    }
  });
}

TEST_P(GoDeathTest, ALargerStackHoldsMore) {
  run_with(GetParam(), [] {
    WaitGroup group;
    group.add(1);
    int result = -1;
    go({.stack_bytes = 8 << 20}, [&] {
      result = recurse(4000);  // 2 MiB and more
      group.done();
    });
    group.wait();
    EXPECT_NE(result, -1);
  });
}

TEST(GoDeathTestOutside, GoWithoutARuntimeSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(go([] {}), "go\\(\\) outside tuza::run");
  EXPECT_DEATH(yield(), "parking call on a thread that is not a goroutine");
  EXPECT_DEATH(sleep_for(std::chrono::seconds(1)), "not a goroutine");
  EXPECT_DEATH(goexit(), "goexit\\(\\) outside a goroutine");
}

// -- Exceptions across parks that resume on other threads.

struct Tagged {
  int value;
};

TEST(Exceptions, ACatchBlockKeepsItsExceptionOverAMigration) {
  run_with(2, [] {
    for (int i = 0; i < scaled(200); ++i) {
      try {
        throw Tagged{i};
      } catch (const Tagged& outer) {
        testing::migrate();
        EXPECT_EQ(outer.value, i);
        try {
          throw Tagged{i + 1000};
        } catch (const Tagged& inner) {
          testing::migrate();
          EXPECT_EQ(inner.value, i + 1000);
        }
        EXPECT_EQ(outer.value, i);
      }
    }
  });
}

TEST(Exceptions, RethrowAfterAMigrationThrowsTheOwnException) {
  run_with(2, [] {
    WaitGroup group;
    for (int g = 0; g < 8; ++g) {
      group.go([g] {
        for (int i = 0; i < scaled(200); ++i) {
          int seen = -1;
          try {
            try {
              throw Tagged{g * 1000 + i};
            } catch (...) {
              yield();  // others throw and catch on this thread meanwhile
              if (i % 10 == 0) sleep_for(std::chrono::microseconds(50));
              throw;
            }
          } catch (const Tagged& tagged) {
            seen = tagged.value;
          }
          ASSERT_EQ(seen, g * 1000 + i);
        }
      });
    }
    group.wait();
  });
}

TEST(Exceptions, UncaughtExceptionsAreCountedPerGoroutine) {
  run_with(2, [] {
    struct ParksWhileUnwinding {
      int& count;
      ~ParksWhileUnwinding() {
        testing::migrate();
        count = std::uncaught_exceptions();
      }
    };
    int during = -1;
    try {
      const ParksWhileUnwinding parks{during};
      throw Tagged{1};
    } catch (const Tagged&) {
    }
    EXPECT_EQ(during, 1);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    WaitGroup group;
    int elsewhere = -1;
    group.go([&elsewhere] { elsewhere = std::uncaught_exceptions(); });
    group.wait();
    EXPECT_EQ(elsewhere, 0);
  });
}

}  // namespace
}  // namespace tuza
