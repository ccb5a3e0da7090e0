// Dumps of all goroutines as text, taken while they run.
#include <tuza/sched/goroutine_dump.h>

#include <poll.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/report/activity.h>
#include <tuza/sched/rt/report/walk.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/hogs.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <regex>
#include <sstream>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

// The number of dumps while everything moves, by each of three. TSan needs a second for five dumps; an emulator is
// as slow. Each dump asks every running goroutine where it is, and on a busy machine waits for the answers.
int dump_rounds() {
  const bool slow = rt::kTsan || rt::kAsan || std::getenv("TUZA_EMULATED") != nullptr;
  return slow ? 5 : scaled(10) + 5;
}

class DumpTest : public testing::WithProcs {};
TUZA_WITH_PROCS(DumpTest);

// Frames with names to search for. Tests are compiled without tail calls, so each frame stays a separate one.
TUZA_NOIPA void wait_deep(Chan<int>& chan, int depth) {
  if (depth == 0) {
    (void)chan.recv();
  } else {
    wait_deep(chan, depth - 1);
  }
}

TUZA_NOIPA void nap_in_the_middle() { sleep_for(std::chrono::microseconds(50)); }

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
    EXPECT_FALSE(deep.body.contains("tuza::rt::") || deep.body.contains("goroutine_main")) << deep.body;
    EXPECT_TRUE(dump_goroutines({.frames = true}).contains("  #0  tuza::rt::"));
    EXPECT_NE(deep.body.find("created by goroutine 1 in "), std::string::npos) << deep.body;
    EXPECT_NE(deep.body.find("goroutine_dump_test.cpp:"), std::string::npos) << deep.body;
    EXPECT_TRUE(std::regex_match(self.head, std::regex("goroutine 1 \\[running[^\\]]*, M[0-9]+\\].*:")))
        << self.head;
    nothing.close();
    group.wait();
  });
}

// `text`: a std::string_view.
std::size_t describe_test(const void* text, rt::ReadMemory read, std::span<char> into) {
  std::string_view view;
  std::array<char, 64> bytes;
  if (!read(&view, text, sizeof view) || view.size() > bytes.size()) return 0;
  if (!read(bytes.data(), view.data(), view.size())) return 0;
  return rt::append(into, 0, {bytes.data(), view.size()});
}

TEST_P(DumpTest, HasTheRuntimesFramesIfTheEnvironmentAsksForThem) {
  setenv("TUZA_DEBUG", "allframes", 1);
  run_with(GetParam(), [] {
    Chan<int> nothing(0);
    WaitGroup group;
    group.go([&] { wait_deep(nothing, 5); });
    testing::wait_until_parked(1, WaitReason::kChanReceive);
    const std::string text = dump_goroutines();
    EXPECT_TRUE(text.contains("tuza::rt::park(") && text.contains("goroutine_main")) << text;
    nothing.close();
    group.wait();
  });
  unsetenv("TUZA_DEBUG");
}

TEST_P(DumpTest, GroupsWhatIsTheSame) {
  run_with(GetParam(), [] {
    const int kMany = std::max(scaled(3000), 300), kFew = 5;
    std::string many = std::to_string(kMany);
    many += " goroutines [";
    Chan<int> nothing(0);
    WaitGroup group;
    const std::string_view activity = "serving\nGET /";
    for (int i = 0; i < kMany; ++i) {
      group.go([&] {
        const rt::ActivityScope announced(&describe_test, &activity);
        wait_deep(nothing, 2);
      });
    }
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
    EXPECT_EQ(times(text, ":\n  serving?GET / (one of them)\n  #0  "), 1u) << text;
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
    EXPECT_NE(dump_goroutines().find(" [syscall, "), std::string::npos) << dump_goroutines();
    leave = true;
    group.wait();
    EXPECT_EQ(dump_goroutines().find("[syscall"), std::string::npos);
  });
}

// Computes in its own frame: optimised leaf functions have none, and hide their callers.
TUZA_NOIPA void compute_in_the_middle(const std::atomic<bool>& stop) {
  volatile unsigned sum = 0;
  while (!stop) {
    for (unsigned i = 0; i < 2000; ++i) sum = sum + i;
    (void)std::chrono::steady_clock::now();  // TSan delivers a signal at an intercepted call
  }
}

TUZA_NOIPA void compute_elsewhere(const std::atomic<bool>& stop) { compute_in_the_middle(stop); }

// The head and the body of the goroutine with this name; empty if there is none.
Entry entry_of(std::string_view name) {
  for (const Entry& entry : entries_of(dump_goroutines())) {
    if (entry.head.find(name) != std::string::npos) return entry;
  }
  return {};
}

// Also of those that the lane has suspended, which are in the signal handler all the time.
TEST_P(DumpTest, NamesGoroutinesThatComputeWithAgeActivityAndStack) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    const std::string_view text = "serving\nGET /";
    WaitGroup group;
    for (int i = 0; i < testing::kHogs; ++i) {
      group.go([&stop, &text, i] {
        set_goroutine_name("hog " + std::to_string(i) + ".");
        const rt::ActivityScope announced(&describe_test, &text);
        compute_in_the_middle(stop);
      });
    }
    for (int i = 0; i < testing::kHogs; ++i) {
      Entry entry;
      wait_for([&] {
        entry = entry_of("hog " + std::to_string(i) + ".");
        return entry.head.find("without a P") != std::string::npos &&
               entry.body.find("compute_in_the_middle") != std::string::npos;
      });
      const std::regex head(
          "goroutine [0-9]+ \\[running without a P(, suspended)?, [0-9]+ (ms|s|min)"
          "(, [0-9]+ (ms|s|min) of CPU)?, M[0-9]+\\] hog [0-9]\\.:");
      EXPECT_TRUE(std::regex_match(entry.head, head)) << entry.head;
      EXPECT_TRUE(entry.body.starts_with("  serving?GET /\n")) << entry.body;
      EXPECT_NE(entry.body.find("goroutine_dump_test.cpp:"), std::string::npos) << entry.body;
    }
    stop = true;
    group.wait();
  });
}

// However many wait, and wherever each was when it was asked.
TEST_P(DumpTest, GroupsThoseThatRunByTheirRequestAndShowsThemFirst) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    Chan<int> nothing(0);
    WaitGroup group;
    for (int i = 0; i < 2 * testing::kHogs; ++i) group.go([&] { wait_deep(nothing, 2); });
    const std::array<std::string_view, 2> texts{"serving GET /a?n=1", "serving GET /a?n=2"};
    for (int i = 0; i < testing::kHogs; ++i) {
      group.go([&stop, text = texts[static_cast<std::size_t>(i % 2)], i] {
        const rt::ActivityScope announced(&describe_test, &text);
        i % 2 == 0 ? compute_in_the_middle(stop) : compute_elsewhere(stop);
      });
    }
    const std::regex first("[^\n]*\n\n" + std::to_string(testing::kHogs) +
                           " goroutines \\[running without a P(, suspended)?, [^\n]*\\], numbers [0-9 .]*:\n"
                           "  serving GET /a\\?n=[12] \\(one of them\\)\n  #0  ");
    wait_for([&] {
      return std::regex_search(dump_goroutines({.group = true}), first,
                               std::regex_constants::match_continuous);
    });
    wait_for([&] {
      return times(dump_goroutines({.stacks = false}), "]:\n  serving GET /a?n=") == testing::kHogs;
    });
    stop = true;
    nothing.close();
    group.wait();
  });
}

// The thread is left alone, so what the goroutine works on is read from outside, even where there is no memory.
// What a goroutine works on may be gone while another thread reads it. Each of them stays in one call: on its own
// thread, where a signal would find it, a goroutine reads what it has announced without a check.
TEST_P(DumpTest, NamesWhatGoroutinesInTheKernelWorkOn) {
  run_with(GetParam(), [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    std::memcpy(page, "going", 5);
    const std::string_view text = "reading a disk";
    const std::string_view leads_nowhere(static_cast<const char*>(page), 5);
    const auto* const gone = ::new (static_cast<char*>(page) + 64) std::string_view(text);
    WaitGroup group;
    const auto block = [&](const char* name, const std::string_view* context) {
      group.go([in = ends[0], name, context] {
        set_goroutine_name(name);
        const rt::ActivityScope announced(&describe_test, context);
        char end = 0;
        EXPECT_EQ(::read(in, &end, 1), 1);
      });
    };
    block("with a text", &text);
    block("with none", &leads_nowhere);
    block("without context", gone);
    const auto wait_for_entry = [](const char* name, const char* body) {
      wait_for([=] {
        const Entry entry = entry_of(name);
        return entry.head.find("in the kernel") != std::string::npos && entry.body.starts_with(body);
      });
    };
    wait_for_entry("with a text", "  reading a disk\n  #0  ");
    wait_for_entry("with none", "  going\n  #0  ");
    wait_for_entry("without context", "  reading a disk\n  #0  ");
    // Not munmap(): another mapping of this process might take the address.
    ASSERT_EQ(::mprotect(page, 4096, PROT_NONE), 0);
    for (const char* name : {"with none", "without context"}) wait_for_entry(name, "  #0  ");
    EXPECT_EQ(::write(ends[1], "end", 3), 3);
    group.wait();
    ::munmap(page, 4096);
    ::close(ends[0]);
    ::close(ends[1]);
  });
}

// A function that does without a frame may have any words in the register and on the stack.
TEST_P(DumpTest, NoWordOnTheStackLeadsOutOfIt) {
  run_with(GetParam(), [] {
    std::array<std::uintptr_t, 64> words;
    std::array<std::uintptr_t, 8> pcs;
    for (const std::intptr_t word : {-8, -16, -24, 0, 8}) {
      words.fill(static_cast<std::uintptr_t>(word));
      const auto sp = reinterpret_cast<std::uintptr_t>(words.data());
      const Interrupted at{.pc = 1, .sp = sp, .fp = words[0]};
      const std::size_t count = rt::walk_interrupted(*rt::current_g(), at, pcs);
      ASSERT_GE(count, 1u);
      EXPECT_EQ(pcs[0], at.pc);
    }
  });
}

// A signal would end the sleep with EINTR.
TEST_P(DumpTest, LeavesThreadsAloneThatWaitInTheKernel) {
  run_with(GetParam(), [] {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ssize_t got = -2;
    WaitGroup group;
    group.go([&] {
      set_goroutine_name("poller");
      pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
      got = ::poll(&wanted, 1, -1);
    });
    Entry entry;
    wait_for([&] {
      entry = entry_of("poller");
      // poll(2) is ppoll(2) on aarch64.
      return entry.head.find("in the kernel: poll") != std::string::npos ||
             entry.head.find("in the kernel: ppoll") != std::string::npos;
    });
    for (int i = 0; i < 20; ++i) entry = entry_of("poller");
    EXPECT_NE(entry.body.find("#0  "), std::string::npos) << entry.body;
    EXPECT_NE(entry.body.find("left alone"), std::string::npos) << entry.body;
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    group.wait();
    EXPECT_EQ(got, 1);
    ::close(ends[0]);
    ::close(ends[1]);
  });
}

// The signal may come between any two instructions, also while the goroutine parks, and several ask at a time.
TEST_P(DumpTest, SamplesWhileGoroutinesRunParkAndEnd) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<std::size_t> seen = 0;
    const std::string_view text = "at work";
    WaitGroup churn, dumping;
    for (int i = 0; i < 4; ++i) {
      churn.go([&] {
        while (!stop) {
          WaitGroup once;
          once.go([&] {
            const rt::ActivityScope announced(&describe_test, &text);
            for (int n = 0; n < 10; ++n) testing::compute(1), nap_in_the_middle();
          });
          once.wait();
        }
      });
    }
    for (int i = 0; i < 3; ++i) {
      dumping.go([&] {
        for (int round = 8; round > 0; --round) {
          for (const Entry& entry : entries_of(dump_goroutines())) {
            if (entry.body.find("  at work\n") != std::string::npos) ++seen;
          }
        }
      });
    }
    dumping.wait();
    stop = true;
    churn.wait();
    EXPECT_GT(seen, 0u);
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
        for (int round = 0; round < rounds; ++round) check(dump_goroutines({.frames = true}));
      });
    }
    std::atomic<bool> outside_done = false;
    std::thread outside([&] {
      for (int round = 0; round < rounds; ++round) check(dump_goroutines({.frames = true}));
      outside_done = true;
    });
    dumping.wait();
    wait_for([&] { return outside_done.load(); });
    outside.join();
    stop = true;
    churn.wait();
    EXPECT_GT(waiting_seen, static_cast<std::size_t>(rounds));
  });
}

}  // namespace
}  // namespace tuza
