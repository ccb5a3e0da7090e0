// Dumps of all goroutines as text, taken while they run.
#include <tuza/sched/goroutine_dump.h>

#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/hogs.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::Hogs;
using testing::run_with;
using testing::scaled;
using testing::wait_for;

// The number of dumps while everything moves. TSan needs a second for five dumps; an emulator is as slow.
int dump_rounds() {
  const bool slow = rt::kTsan || rt::kAsan || std::getenv("TUZA_EMULATED") != nullptr;
  return slow ? 20 : scaled(1000) + 50;
}

class DumpTest : public testing::WithProcs {};
TUZA_WITH_PROCS(DumpTest);

// Frames with names to search for. Tests are compiled without tail calls, so each frame stays a separate one.
[[gnu::noipa]] void wait_deep(Chan<int>& chan, int depth) {
  if (depth == 0) {
    (void)chan.recv();
  } else {
    wait_deep(chan, depth - 1);
  }
}

[[gnu::noipa]] void nap_in_the_middle() { sleep_for(std::chrono::microseconds(50)); }

// One goroutine of a dump: its headline and the lines below.
struct Entry {
  std::string head, body;
};

std::vector<Entry> entries_of(const std::string& text) {
  std::vector<Entry> all;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the number of goroutines
  while (std::getline(lines, line)) {
    if (line.empty()) {
      all.emplace_back();
      std::getline(lines, all.back().head);
    } else if (!all.empty()) {
      all.back().body += line + "\n";
    }
  }
  return all;
}

std::size_t times(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Dump, SaysThatThereIsNoRuntime) {
  EXPECT_EQ(dump_goroutines(), "0 goroutines: 0 running, 0 runnable, 0 waiting\n");
}

TEST_P(DumpTest, SaysForEachWhatItWaitsForWhereAndItsCreator) {
  run_with(GetParam(), [] {
    Chan<int> nothing(0);
    WaitGroup group;
    std::uint64_t id = 0;
    group.add(1);
    go({.name = "deep one"}, [&] {
      id = goroutine_id();
      wait_deep(nothing, 5);
      group.done();
    });
    std::string text;
    wait_for([&] {
      text = dump_goroutines();
      return text.find("[chan receive, ") != std::string::npos;
    });
    const std::vector<Entry> all = entries_of(text);
    ASSERT_EQ(all.size(), 2u) << text;
    const Entry& deep = all[0].head.find("deep one") != std::string::npos ? all[0] : all[1];
    const Entry& self = &deep == &all[0] ? all[1] : all[0];
    EXPECT_TRUE(std::regex_match(deep.head, std::regex("goroutine " + std::to_string(id) +
                                                       " \\[chan receive, [0-9]+ (ms|s|min)\\] deep one:")))
        << deep.head;
    EXPECT_EQ(times(deep.body, "wait_deep"), 6u) << deep.body;
    EXPECT_NE(deep.body.find("tuza::rt::park("), std::string::npos) << deep.body;
    EXPECT_NE(deep.body.find("goroutine_main"), std::string::npos) << deep.body;
    EXPECT_NE(deep.body.find("created by goroutine 1 in "), std::string::npos) << deep.body;
    EXPECT_NE(deep.body.find("goroutine_dump_test.cpp:"), std::string::npos) << deep.body;
    EXPECT_TRUE(std::regex_match(self.head, std::regex("goroutine 1 \\[running[^\\]]*, M[0-9]+\\].*:")))
        << self.head;
    nothing.close();
    group.wait();
  });
}

TEST_P(DumpTest, GroupsWhatIsTheSame) {
  run_with(GetParam(), [] {
    const int kMany = std::max(scaled(3000), 300), kFew = 5;
    std::string many = std::to_string(kMany);
    many += " goroutines [";
    Chan<int> nothing(0);
    WaitGroup group;
    for (int i = 0; i < kMany; ++i) group.go([&] { wait_deep(nothing, 2); });
    for (int i = 0; i < kFew; ++i) group.go([&] { wait_deep(nothing, 3); });
    std::string text;
    wait_for([&] {
      text = dump_goroutines({.group = true});
      return text.find(many + "chan receive") != std::string::npos &&
             text.find("\n5 goroutines [chan receive") != std::string::npos;
    });
    EXPECT_LT(text.size(), 32'000u);
    EXPECT_LT(text.find(many), text.find("\n5 goroutines [")) << text;
    EXPECT_EQ(times(text, "wait_deep"), 3u + 4u) << text;
    // Dumped one by one, each goroutine has an entry, and the text comes in pieces.
    std::size_t entries = 0, pieces = 0;
    dump_goroutines([&](std::string_view piece) {
      entries += times(std::string(piece), "\ngoroutine ");
      ++pieces;
      return true;
    });
    EXPECT_EQ(entries, static_cast<std::size_t>(kMany + kFew + 1));
    EXPECT_GT(pieces, static_cast<std::size_t>(kMany) / 300);
    int calls = 0;
    dump_goroutines([&](std::string_view) { return ++calls < 3; });
    EXPECT_EQ(calls, 3);
    nothing.close();
    group.wait();
  });
}

// Like Go: both with a P, and after the P has been taken.
TEST_P(DumpTest, CallsAMarkedBlockingCallSyscall) {
  run_with(GetParam(), [] {
    std::atomic<bool> inside = false, leave = false;
    WaitGroup group;
    group.go([&] {
      const BlockingCall call;
      inside = true;
      while (!leave) std::this_thread::sleep_for(1ms);
    });
    wait_for([&] { return inside.load(); });
    EXPECT_NE(dump_goroutines().find(" [syscall, M"), std::string::npos) << dump_goroutines();
    leave = true;
    group.wait();
    EXPECT_EQ(dump_goroutines().find("syscall, M"), std::string::npos);
  });
}

TEST_P(DumpTest, SaysWhichGoroutinesAreSuspended) {
  run_with(GetParam(), [] {
    Hogs hogs(8);
    wait_for([] { return dump_goroutines().find("running without a P, suspended") != std::string::npos; });
  });
}

// The run ends while a thread still reads a dump. The reader may be one of the goroutines that have gone by then.
TEST(Dump, OnAThreadItDoesNotDelayTheEndOfTheRun) {
  std::atomic<bool> writing = false, ended = false;
  std::thread outside;
  const int status = run(RunOptions{.max_procs = 1}, [&] {
    for (int i = 0; i < 1000; ++i) go([] { sleep_for(1h); });  // more than one piece of text
    outside = std::thread([&] {
      dump_goroutines([&](std::string_view) {
        writing = true;
        while (!ended) std::this_thread::sleep_for(1ms);
        return true;
      });
    });
    wait_for([&] { return writing.load(); });
    return 0;
  });
  ended = true;
  outside.join();
  EXPECT_EQ(status, 0);
}

// Goroutines start, park, are woken and end all the time, by goroutines and from outside, while several dump.
// Each goroutine reported as waiting must show a frame in which it does wait: a walk over a running stack could
// find anything.
TEST_P(DumpTest, IsRightWhileEverythingMoves) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<std::size_t> waiting_seen = 0;
    WaitGroup churn;
    for (int i = 0; i < 8; ++i) {
      churn.go([&] {
        while (!stop) {
          WaitGroup short_lived;
          for (int n = 0; n < 4; ++n) {
            short_lived.add(1);
            go({.name = "napper"}, [&] {
              for (int naps = 0; naps < 5; ++naps) nap_in_the_middle();
              short_lived.done();
            });
          }
          short_lived.wait();
        }
      });
    }
    const auto check = [&](const std::string& text) {
      for (const Entry& entry : entries_of(text)) {
        if (entry.head.find("[sleep") == std::string::npos || entry.head.find("napper") == std::string::npos)
          continue;
        EXPECT_NE(entry.body.find("nap_in_the_middle"), std::string::npos) << entry.head << "\n"
                                                                           << entry.body;
        EXPECT_NE(entry.body.find("goroutine_main"), std::string::npos) << entry.head << "\n" << entry.body;
        ++waiting_seen;
      }
    };
    const int rounds = dump_rounds();
    WaitGroup dumping;
    for (int i = 0; i < 2; ++i) {
      dumping.go([&] {
        for (int round = 0; round < rounds; ++round) check(dump_goroutines());
      });
    }
    std::atomic<bool> outside_done = false;
    std::thread outside([&] {
      for (int round = 0; round < rounds; ++round) check(dump_goroutines());
      outside_done = true;
    });
    dumping.wait();
    wait_for([&] { return outside_done.load(); });
    outside.join();
    stop = true;
    churn.wait();
    EXPECT_GT(waiting_seen, 100u);
  });
}

}  // namespace
}  // namespace tuza
