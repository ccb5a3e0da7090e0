// go() with arguments: what becomes of them, and of the place of the call.
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/goroutine_dump.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza {
namespace {

using namespace testing;

class GoArgumentsTest : public WithProcs {};
TUZA_WITH_PROCS(GoArgumentsTest);

void send_sum(Chan<int>& sums, int a, int b) { sums.send(a + b); }

struct Counter {
  void add(int n, Chan<int>* to) { to->send(total += n); }
  int total = 0;
};

TEST_P(GoArgumentsTest, FunctionsLambdasAndMembersAreCalledWithThem) {
  run_with(GetParam(), [] {
    Chan<int> sums;
    go(send_sum, std::ref(sums), 1, 2);
    EXPECT_EQ(sums.recv(), 3);
    go(&send_sum, std::ref(sums), 3, 4);
    EXPECT_EQ(sums.recv(), 7);
    const auto lambda = [](Chan<int>* to, int n) { to->send(n); };
    go(lambda, &sums, 9);
    EXPECT_EQ(sums.recv(), 9);
    Counter counter;
    go(&Counter::add, &counter, 5, &sums);
    EXPECT_EQ(sums.recv(), 5);
    EXPECT_EQ(counter.total, 5);
  });
}

TEST_P(GoArgumentsTest, AreCopiesUnlessPassedByRef) {
  run_with(GetParam(), [] {
    Chan<int> begin;
    Chan<std::string> out{2};
    std::string copied = "copied";
    std::string referred = "referred";
    go(
        [&](const std::string& a, const std::string& b) {
          begin.recv();
          out.send(a);
          out.send(b);
        },
        copied, std::ref(referred));
    copied = "changed";
    referred = "changed";
    begin.send(1);
    EXPECT_EQ(out.recv(), "copied");
    EXPECT_EQ(out.recv(), "changed");
  });
}

TEST_P(GoArgumentsTest, LiteralsDecayAndRvaluesMoveIntoTheCall) {
  run_with(GetParam(), [] {
    Chan<std::size_t> sizes;
    auto measure = [&sizes](std::string text, std::unique_ptr<int>&& number) {
      sizes.send(text.size() + static_cast<std::size_t>(*number));
    };
    go(measure, "four", std::make_unique<int>(10));
    EXPECT_EQ(sizes.recv(), 14u);
  });
}

TEST_P(GoArgumentsTest, DieWithTheGoroutine) {
  run_with(GetParam(), [] {
    auto watched = std::make_shared<int>(1);
    Chan<long> uses;
    go([&uses](const std::shared_ptr<int>& mine) { uses.send(mine.use_count()); }, watched);
    EXPECT_EQ(uses.recv(), 2);
    testing::yield_until([&] { return watched.use_count() == 1; });
  });
}

TEST_P(GoArgumentsTest, OptionsComeFirst) {
  run_with(GetParam(), [] {
    Chan<std::string> names;
    auto tell = [](Chan<std::string>& to, const std::string& after) {
      to.send(std::string(goroutine_name()) + after);
    };
    go({.name = "named"}, tell, std::ref(names), "!");
    EXPECT_EQ(names.recv(), "named!");
    const GoOptions options{.name = "kept"};
    go(options, tell, std::ref(names), "?");
    EXPECT_EQ(names.recv(), "kept?");
    ASSERT_TRUE(try_go(options, tell, std::ref(names), "."));
    EXPECT_EQ(names.recv(), "kept.");
  });
}

TEST_P(GoArgumentsTest, DumpsNameTheLineOfTheCall) {
  run_with(GetParam(), [] {
    Chan<int> end;
    const auto line = std::source_location::current().line() + 1;
    go({.name = "placed"}, [](Chan<int>& wait_for) { wait_for.recv(); }, std::ref(end));
    const std::string place = "go_arguments_test.cpp:" + std::to_string(line);
    EXPECT_NE(dump_goroutines().find(place), std::string::npos) << dump_goroutines();
    end.close();
    testing::yield_until([] { return num_goroutine() == 1; });  // it has left the channel
  });
}

TEST_P(GoArgumentsTest, AnExceptionFromCopyingOneLeavesNoGoroutineBehind) {
  run_with(GetParam(), [] {
    struct Throws {
      Throws() = default;
      Throws(const Throws&) { throw std::runtime_error("no copy"); }
    };
    const Throws argument;
    EXPECT_THROW(go([](const Throws&) {}, argument), std::runtime_error);
    EXPECT_EQ(num_goroutine(), 1u);
  });
}

TEST(GoArguments, AreUntouchedWhereNoGoroutineStarts) {
  auto kept = std::make_unique<int>(7);
  const Result<void> started = try_go({}, [](std::unique_ptr<int>) {}, std::move(kept));
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().is(Errc::kNotRunning));
  EXPECT_EQ(*kept, 7);  // NOLINT(bugprone-use-after-move): this is what the test is about
}

}  // namespace
}  // namespace tuza
