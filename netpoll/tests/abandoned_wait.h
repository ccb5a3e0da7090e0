// Goroutines abandoned at the end of tuza::run while they wait for the network, and the objects they waited
// for: the requirements for every kind of wait. A test program lists its kinds (all_kinds_of_waits) and
// includes this header in one file.
#pragma once

#include <sys/socket.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tests/raw_socket.h>
#include <tuza/sched/go.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tuza::net::testing {

// An object that goroutines wait for.
class NetWait {
 public:
  virtual ~NetWait() = default;
  // Creates the object. Call once, on a goroutine.
  virtual void open() = 0;
  // Waits, until close() at the latest. Call on a goroutine.
  virtual void wait() = 0;
  // The number of waiters: two, one of which may wait for the other to finish.
  [[nodiscard]] virtual int waiters() const { return 2; }
  // May release a waiter. Any thread; does not wait.
  virtual void poke() {}
  // A new wait, served by another goroutine. Call on a goroutine while there are no other waiters. Returns
  // true if it was served.
  [[nodiscard]] virtual bool use() = 0;
  // Any thread; does not wait.
  virtual void close() = 0;
};

struct WaitKind {
  std::string name;
  std::unique_ptr<NetWait> (*make)();
};

template <class W>
WaitKind kind_of_wait(std::string name) {
  return {std::move(name), [] { return std::unique_ptr<NetWait>(new W); }};
}

std::vector<WaitKind> all_kinds_of_waits();

// -- For use().

// `listener` accepts the connections in its backlog, and answers the first that sends, a client made by
// `dial`.
inline bool accepts(Listener& listener, const std::function<Result<Conn>()>& dial) {
  std::vector<std::unique_ptr<Conn>> accepted;
  const auto [ctx, cancel] = with_cancel({});
  WaitGroup accepting, answering, dialling;
  accepting.go([&, &context = ctx] {
    while (Result<Conn> conn = listener.accept(context)) {
      accepted.push_back(std::make_unique<Conn>(std::move(*conn)));
      answering.go([&client = *accepted.back()] {
        if (const std::string got = read_some(client); got == "hello") (void)client.write_all(got);
      });
    }
  });
  bool answered = false;
  dialling.go([&] {
    Result<Conn> client = dial();
    answered = client && answers(*client);
  });
  dialling.wait();
  cancel();
  accepting.wait();
  for (const auto& conn : accepted) conn->close();
  answering.wait();
  return answered;
}

// `reader` gets what `writer` sends, perhaps after other data.
inline bool transfers(Conn& writer, Conn& reader) {
  WaitGroup group;
  bool written = false;
  group.go([&] { written = writer.write_all("z").has_value(); });
  std::string got;
  do got = read_some(reader);
  while (!got.empty() && !got.starts_with("<") && !got.ends_with("z"));
  group.wait();
  return written && got.ends_with("z");
}

// -- The requirements.

struct AbandonedWaitCase {
  WaitKind kind;
  int procs;
};

inline std::vector<AbandonedWaitCase> abandoned_wait_cases() {
  std::vector<AbandonedWaitCase> all;
  for (const WaitKind& kind : all_kinds_of_waits()) {
    for (const int procs : proc_counts({1, 2})) all.push_back({kind, procs});
  }
  return all;
}

class AbandonedWait : public ::testing::TestWithParam<AbandonedWaitCase> {
 protected:
  static RunOptions options() { return {.max_procs = GetParam().procs}; }
  static std::unique_ptr<NetWait> make() { return GetParam().kind.make(); }

  static void start_waiters(NetWait& waited_for) {
    for (int i = 0; i < waited_for.waiters(); ++i) go([&waited_for] { waited_for.wait(); });
  }
  static std::unique_ptr<NetWait> make_and_leave_waiters() {
    std::unique_ptr<NetWait> made = make();
    run(options(), [&made] {
      made->open();
      start_waiters(*made);
      wait_until_all_park();
    });
    return made;
  }
  static void use(NetWait& waited_for) {
    run_with(GetParam().procs, [&waited_for] { EXPECT_TRUE(waited_for.use()); });
  }
};

inline std::string name_of_wait(const ::testing::TestParamInfo<AbandonedWaitCase>& info) {
  return info.param.kind.name + "_P" + std::to_string(info.param.procs);
}
INSTANTIATE_TEST_SUITE_P(All, AbandonedWait, ::testing::ValuesIn(abandoned_wait_cases()), name_of_wait);

TEST_P(AbandonedWait, WhatTheyWaitedForMayBeDestroyedAfterwards) { make_and_leave_waiters(); }

TEST_P(AbandonedWait, WhatTheyWaitedForServesTheNextRuntime) {
  const auto waited_for = make_and_leave_waiters();
  use(*waited_for);
}

TEST_P(AbandonedWait, TwoRuntimesMayLeaveThemBehind) {
  const auto waited_for = make_and_leave_waiters();
  run(options(), [&waited_for] {
    start_waiters(*waited_for);
    wait_until_all_park();
  });
  use(*waited_for);
}

TEST_P(AbandonedWait, AThreadMayCloseItAfterwardsAndNobodyWaitsForItThen) {
  const auto waited_for = make_and_leave_waiters();
  std::thread([&waited_for] { waited_for->close(); }).join();
  run_with(GetParam().procs, [&waited_for] { waited_for->wait(); });
}

TEST_P(AbandonedWait, AThreadMayCloseItWhileTheRuntimeEnds) {
  for (int i = 0; i < scaled(20); ++i) {
    const auto waited_for = make();
    std::thread closer;
    run(options(), [&] {
      waited_for->open();
      start_waiters(*waited_for);
      if (i % 2 == 0) wait_until_all_park();
      closer = std::thread([&waited_for] { waited_for->close(); });
    });
    closer.join();
  }
}

// The goroutines have been woken but never run.
TEST_P(AbandonedWait, WokenAtTheLastMomentTheyAreForgottenAsWell) {
  const auto waited_for = make_and_leave_waiters();
  for (int round = 0; round < 3; ++round) {
    run(options(), [&waited_for] {
      start_waiters(*waited_for);
      wait_until_all_park();
      waited_for->poke();
    });
  }
  use(*waited_for);
}

// A goroutine that was woken, and is in the middle of its call when the runtime ends, holds for ever what it holds:
// what it waited for is not used again.
TEST_P(AbandonedWait, AThreadMayWakeThemWhileTheRuntimeEnds) {
  for (int i = 0; i < scaled(20); ++i) {
    const auto waited_for = make();
    std::thread poker;
    run(options(), [&] {
      waited_for->open();
      start_waiters(*waited_for);
      if (i % 2 == 0) wait_until_all_park();
      poker = std::thread([&waited_for] { waited_for->poke(); });
    });
    poker.join();
  }
}

// -- exit() while goroutines wait, for one object of each kind. The objects are static.

struct StaticWaits {
  std::vector<std::unique_ptr<NetWait>> all;
  ~StaticWaits() {
    for (const auto& waited_for : all) {
      waited_for->poke();
      waited_for->close();
    }
  }
};

enum class Exits { kMain, kGoroutine, kThread };

[[noreturn]] inline void exit_while_they_wait(int procs, Exits who) {
  static StaticWaits keeper;
  for (const WaitKind& kind : all_kinds_of_waits()) keeper.all.push_back(kind.make());
  run(RunOptions{.max_procs = procs}, [who] {
    for (const auto& waited_for : keeper.all) {
      waited_for->open();
      for (int i = 0; i < waited_for->waiters(); ++i) go([&waited_for] { waited_for->wait(); });
    }
    wait_until_all_park();
    if (who == Exits::kMain) return;
    if (who == Exits::kGoroutine) go([] { std::exit(0); });
    if (who == Exits::kThread) std::thread([] { std::exit(0); }).detach();
    sleep_for(1h);
  });
  std::exit(0);
}

class AbandonedWaitDeathTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(P, AbandonedWaitDeathTest, ::testing::ValuesIn(proc_counts({1, 2})));

TEST_P(AbandonedWaitDeathTest, ExitFindsNobodyWaiting) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Exits who : {Exits::kMain, Exits::kGoroutine, Exits::kThread})
    EXPECT_EXIT(exit_while_they_wait(GetParam(), who), ::testing::ExitedWithCode(0), "^$|CHAOS_SEED");
}

}  // namespace tuza::net::testing
