// go() of groups and async() with arguments and options: the rules of tuza::go() (sched/tests/go_arguments_test.cpp).
#include <tuza/sched/goroutine_dump.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/error_group.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/scope.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tuza {
namespace {

using namespace testing;

class GroupArgumentsTest : public WithProcs {};
TUZA_WITH_PROCS(GroupArgumentsTest);

void add_to(int& sum, std::unique_ptr<int> part) { sum += *part; }
int sum_of(int a, std::unique_ptr<int> b) { return a + *b; }

struct Counter {
  int total = 0;
  void add(int n) { total += n; }
};

TEST_P(GroupArgumentsTest, FunctionsAndMembersAreCalledWithThem) {
  run_with(GetParam(), [] {
    int sum = 0;
    WaitGroup waited;
    waited.go(add_to, std::ref(sum), std::make_unique<int>(1));
    waited.wait();
    {
      Scope scope;
      scope.go(add_to, std::ref(sum), std::make_unique<int>(20));
    }
    ErrorGroup group;
    group.go(add_to, std::ref(sum), std::make_unique<int>(300));
    ASSERT_TRUE(group.wait());
    ASSERT_TRUE(group.try_go(add_to, std::ref(sum), std::make_unique<int>(4000)));
    ASSERT_TRUE(group.wait());
    EXPECT_EQ(sum, 4321);
    Counter counter;
    waited.go(&Counter::add, &counter, 5);
    waited.wait();
    EXPECT_EQ(counter.total, 5);
    EXPECT_EQ(async(sum_of, 2, std::make_unique<int>(3)).get(), 5);
    EXPECT_EQ(async({.name = "named"}, sum_of, 4, std::make_unique<int>(5)).get(), 9);
    const GoOptions options;
    EXPECT_EQ(async(options, sum_of, 6, std::make_unique<int>(7)).get(), 13);
  });
}

TEST_P(GroupArgumentsTest, AreCopiesUnlessPassedByRef) {
  run_with(GetParam(), [] {
    Chan<int> begin;
    std::string copied = "copied", seen;
    WaitGroup waited;
    waited.go(
        [&](const std::string& mine) {
          begin.recv();
          seen = mine;
        },
        copied);
    copied = "changed";
    begin.send(1);
    waited.wait();
    EXPECT_EQ(seen, "copied");
  });
}

// Its destructor lets an owner run that continues too early.
class Slow {
 public:
  explicit Slow(bool* destroyed) : destroyed_(destroyed) {}
  Slow(Slow&& other) noexcept : destroyed_(std::exchange(other.destroyed_, nullptr)) {}
  ~Slow() {
    if (destroyed_ == nullptr) return;
    for (int i = 0; i < 20; ++i) yield();
    *destroyed_ = true;
  }

 private:
  bool* destroyed_;
};

TEST_P(GroupArgumentsTest, AreDestroyedBeforeTheOwnerContinues) {
  run_with(GetParam(), [] {
    const auto nothing = [](const Slow&) {};
    bool destroyed = false;
    WaitGroup waited;
    waited.go(nothing, Slow(&destroyed));
    waited.wait();
    EXPECT_TRUE(std::exchange(destroyed, false));
    {
      Scope scope;
      scope.go(nothing, Slow(&destroyed));
    }
    EXPECT_TRUE(std::exchange(destroyed, false));
    ErrorGroup group;
    group.go(nothing, Slow(&destroyed));
    EXPECT_TRUE(group.wait());
    EXPECT_TRUE(std::exchange(destroyed, false));
    async(nothing, Slow(&destroyed)).get();
    EXPECT_TRUE(destroyed);
  });
}

TEST_P(GroupArgumentsTest, FailuresComeOutAsWithoutThem) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    group.go([](int number) -> Result<void> { return std::unexpected(Error::from_errno(number, "test")); },
             EIO);
    const Result<void> ended = group.wait();
    ASSERT_FALSE(ended);
    EXPECT_TRUE(ended.error().is(std::errc::io_error));
    const auto throws = [](const char* text) { throw std::runtime_error(text); };
    EXPECT_THROW(
        {
          Scope scope;
          scope.go(throws, "scope");
        },
        std::runtime_error);
    EXPECT_THROW(async(throws, "async").get(), std::runtime_error);
  });
}

TEST_P(GroupArgumentsTest, AreUntouchedWhereTheLimitIsReached) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    group.set_limit(0);
    int sum = 0;
    auto part = std::make_unique<int>(1);
    EXPECT_FALSE(group.try_go(add_to, std::ref(sum), std::move(part)));
    EXPECT_NE(part, nullptr);  // NOLINT(bugprone-use-after-move): this is what the test is about
  });
}

TEST_P(GroupArgumentsTest, AnExceptionFromCopyingOneLeavesTheGroupUsable) {
  run_with(GetParam(), [] {
    struct Throws {
      Throws() = default;
      Throws(const Throws&) { throw std::runtime_error("no copy"); }
    };
    const Throws argument;
    const auto nothing = [](const Throws&) {};
    WaitGroup waited;
    EXPECT_THROW(waited.go(nothing, argument), std::runtime_error);
    waited.wait();
    Scope scope;
    EXPECT_THROW(scope.go(nothing, argument), std::runtime_error);
    scope.join();
    ErrorGroup group;
    EXPECT_THROW(group.go(nothing, argument), std::runtime_error);
    EXPECT_TRUE(group.wait());
  });
}

TEST_P(GroupArgumentsTest, DumpsNameTheLineOfTheCall) {
  run_with(GetParam(), [] {
    Chan<int> end;
    WaitGroup waited;
    const auto line = std::source_location::current().line() + 1;
    waited.go([](Chan<int>& wait_for) { wait_for.recv(); }, std::ref(end));
    const std::string place = "group_arguments_test.cpp:" + std::to_string(line);
    EXPECT_NE(dump_goroutines().find(place), std::string::npos) << dump_goroutines();
    end.close();
    waited.wait();
  });
}

std::atomic<const char*> g_frame;  // the compiler must keep what it points to

// The default stack is smaller than the frame.
[[gnu::noinline]] std::string dump_below_4_mib() {
  std::array<char, std::size_t{4} << 20> frame;
  frame.fill('.');
  g_frame = frame.data();
  std::string dump = dump_goroutines();
  EXPECT_EQ(*g_frame, '.');
  return dump;
}
void dump_deep(std::string& dump) { dump = dump_below_4_mib(); }

TEST_P(GroupArgumentsTest, OptionsGiveANameAndAStack) {
  run_with(GetParam(), [] {
    std::string dump;
    const auto deep = [&dump] { dump = dump_below_4_mib(); };
    const auto with = [](std::string_view name) { return GoOptions{.name = name, .stack_bytes = 8 << 20}; };
    const auto expect_named = [&dump](const std::string& name) {
      EXPECT_NE(dump.find("] " + name + ":"), std::string::npos) << name << " is missing:\n" << dump;
    };
    WaitGroup waited;
    waited.go(with("waited"), deep);
    waited.wait();
    expect_named("waited");
    waited.go({.name = "braces", .stack_bytes = 8 << 20}, dump_deep, std::ref(dump));
    waited.wait();
    expect_named("braces");
    Scope scope;
    scope.go(with("scoped"), deep);
    scope.join();
    expect_named("scoped");
    scope.go(with("scoped-with"), dump_deep, std::ref(dump));
    scope.join();
    expect_named("scoped-with");
    ErrorGroup group;
    group.go(with("failing"), deep);
    EXPECT_TRUE(group.wait());
    expect_named("failing");
    group.go(with("failing-with"), dump_deep, std::ref(dump));
    EXPECT_TRUE(group.wait());
    expect_named("failing-with");
    EXPECT_TRUE(group.try_go(with("tried"), deep));
    EXPECT_TRUE(group.wait());
    expect_named("tried");
    EXPECT_TRUE(group.try_go(with("tried-with"), dump_deep, std::ref(dump)));
    EXPECT_TRUE(group.wait());
    expect_named("tried-with");
    async(with("async"), deep).get();
    expect_named("async");
    async(with("async-with"), dump_deep, std::ref(dump)).get();
    expect_named("async-with");
  });
}

TEST_P(GroupArgumentsTest, DumpsNameTheLineOfACallWithOptions) {
  run_with(GetParam(), [] {
    Chan<int> end;
    WaitGroup waited;
    const auto line = std::source_location::current().line() + 1;
    waited.go({.name = "first"}, [&end] { end.recv(); });
    waited.go({.name = "second"}, [](Chan<int>& wait_for) { wait_for.recv(); }, std::ref(end));
    const std::string dump = dump_goroutines();
    for (const unsigned one : {line, line + 1}) {
      const std::string place = "group_arguments_test.cpp:" + std::to_string(one);
      EXPECT_NE(dump.find(place), std::string::npos) << dump;
    }
    end.close();
    waited.wait();
  });
}

}  // namespace
}  // namespace tuza
