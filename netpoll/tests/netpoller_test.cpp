// The netpoller with the scheduler: which thread polls, when none does, and service to a thousand
// connections.
#include <tuza/netpoll/poll/netpoller.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tests/poller_spy.h>
#include <tuza/sched/external.h>
#include <tuza/sched/stats.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <array>
#include <optional>
#include <thread>

namespace tuza::net::testing {
namespace {

class NetpollerTest : public WithProcs {};
TUZA_WITH_PROCS(NetpollerTest);

// Sends random bytes in pieces of random size, then the end of the stream. Returns the first error.
Result<void> send_random(Conn& conn, std::uint64_t stream, std::size_t total) {
  std::mt19937_64 random(stream), sizes(stream + 1);
  for (std::size_t left = total; left > 0;) {
    const std::string piece = random_bytes(random, std::min<std::size_t>(1 + sizes() % 5'000, left));
    if (const auto written = conn.write_all(piece); !written) return std::unexpected(written.error());
    left -= piece.size();
    if (sizes() % 4 == 0) yield();
  }
  return conn.close_write();
}

// Reads to the end of the stream and verifies what the other end has sent with send_random(). False: it gave up.
bool verify_random(Conn& conn, std::uint64_t stream, std::size_t total) {
  std::mt19937_64 random(stream), sizes(stream + 2);
  std::size_t received = 0;
  std::string buffer(5'000, '\0');
  for (;;) {
    const std::span<char> piece(buffer.data(), 1 + sizes() % buffer.size());
    const Result<std::size_t> n = conn.read(piece);
    if (!n) {
      ADD_FAILURE() << n.error().message() << " after " << received << " of " << total << " bytes";
      return false;
    }
    if (*n == 0) break;
    if (buffer.compare(0, *n, random_bytes(random, *n)) != 0) {
      ADD_FAILURE() << "wrong bytes after " << received;
      return false;
    }
    received += *n;
  }
  EXPECT_EQ(received, total);
  return true;
}

// Both directions at once. Whatever fails, the writer is joined and the other end does not wait for this one.
void exchange(Conn& conn, std::uint64_t mine, std::uint64_t theirs, std::size_t total) {
  WaitGroup writer;
  writer.go([&conn, mine, total] {
    const Result<void> sent = send_random(conn, mine, total);
    if (!sent) {
      ADD_FAILURE() << sent.error().message();
      conn.close();
    }
  });
  if (!verify_random(conn, theirs, total)) conn.close();
  writer.wait();
}

// Both ends of `count` connections in this process.
void exchange_on_many(int count, std::size_t total) {
  Listener listener = listen_on_loopback();
  const std::string address = to_string(listener.endpoint());
  WaitGroup group;
  for (int i = 0; i < count; ++i) {
    group.go([&listener, &address, total] {
      Result<Conn> conn = dial("tcp", address);
      if (!conn) {
        ADD_FAILURE() << conn.error().message();
        listener.close();  // nothing waits for this connection
        return;
      }
      const std::uint64_t port = conn->local_endpoint().value().port();
      exchange(*conn, seed() + port, seed() - port, total);
    });
  }
  for (int i = 0; i < count; ++i) {
    Result<Conn> accepted = listener.accept();
    if (!accepted) {
      ADD_FAILURE() << accepted.error().message();
      break;
    }
    group.go([conn = std::move(*accepted), total]() mutable {
      const std::uint64_t port = conn.remote_endpoint().value().port();
      exchange(conn, seed() - port, seed() + port, total);
    });
  }
  group.wait();
}

// As many connections, up to a thousand, as this build and the descriptor limit allow.
int many() {
  struct rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const int allowed = static_cast<int>(std::min<rlim_t>((limit.rlim_cur - 64) / 2, 1'000));
  return std::min(allowed, std::max(scaled(1'000), 100));
}

TEST_P(NetpollerTest, AThousandConnectionsGetTheirBytes) {
  run_with(GetParam(), [] { exchange_on_many(many(), 20'000); });
}

TEST(Netpoller, AThousandConnectionsGetTheirBytesWhileTheNumberOfProcessorsChanges) {
  run_with(4, [] {
    std::atomic<bool> done{false};
    WaitGroup changer;
    changer.go([&done] {
      std::mt19937_64 random(seed());
      while (!done) {
        set_max_procs(1 + static_cast<int>(random() % 6));
        sleep_for(1ms);
      }
    });
    exchange_on_many(many(), 20'000);
    done = true;
    changer.wait();
  });
}

TEST_P(NetpollerTest, AtMostOneThreadBlocksInThePoller) {
  run_with(GetParam(), [] {
    poller_spy::reset();
    std::atomic<bool> stop{false};
    WaitGroup group;
    // Goroutines that wait, that compute, that sleep: Ms and the netpoller's own thread take turns.
    for (int i = 0; i < 8; ++i) {
      group.go([&stop, i] {
        LocalPair pair = local_pair();
        WaitGroup reader;
        reader.go([&pair] {
          while (!read_some(*pair.here).empty()) {
          }
        });
        for (int n = 0; n < scaled(2'000) && !stop; ++n) {
          EXPECT_TRUE(pair.there->write_all(bytes("x")));
          if (n % 50 == i) sleep_for(100us);
          if (n % 500 == i) {  // long enough that the netpoller's thread takes over
            const TimePoint until = Clock::now() + 15ms;
            while (Clock::now() < until) {
            }
          }
        }
        pair.there.reset();
        reader.wait();
      });
    }
    group.wait();
    // Now a thread blocks in the poller, if none has before.
    LocalPair quiet = local_pair();
    group.go([&quiet] { EXPECT_EQ(read_some(*quiet.here), ""); });
    while (poller_spy::most_blocking() == 0) sleep_for(1ms);
    quiet.there.reset();
    group.wait();
    EXPECT_EQ(poller_spy::most_blocking(), 1);
  });
}

// Once a thread is blocked in the poller, no thread calls it again while nothing happens, and no M is woken.
TEST_P(NetpollerTest, WithNothingButWaitersTheRuntimeSleeps) {
  run_with(GetParam(), [] {
    std::vector<LocalPair> pairs;
    WaitGroup group;
    for (int i = 0; i < 20; ++i) pairs.push_back(local_pair());
    for (LocalPair& pair : pairs) {
      group.go([&pair] { EXPECT_EQ(read_some(*pair.here), ""); });
    }
    const auto work_done = [] {
      const SchedStats stats = sched_stats();
      return poller_spy::calls() + stats.sysmon_ticks + stats.wakeups;
    };
    std::thread outside([&] {
      // Sysmon needs seconds to stop ticking. If any activity went on for ever, so would this loop.
      std::uint64_t before = 0;
      do {
        before = work_done();
        std::this_thread::sleep_for(300ms);
      } while (work_done() != before || poller_spy::blocking() == 0);
      EXPECT_EQ(poller_spy::blocking(), 1);
      for (LocalPair& pair : pairs) pair.there.reset();  // ends them all, from outside
    });
    group.wait();
    outside.join();
  });
}

TEST_P(NetpollerTest, EventsAreSeenWhileEveryProcessorIsBusy) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    std::atomic<bool> got{false};
    WaitGroup group;
    group.go([&] {
      EXPECT_EQ(read_some(*pair.here), "x");
      got = true;
    });
    wait_until_parked(1, WaitReason::kIoRead);
    for (int i = 0; i < max_procs(); ++i) {
      group.go([&got] {
        while (!got) yield();
      });
    }
    EXPECT_TRUE(pair.there->write_all(bytes("x")));
    group.wait();
  });
}

// -- Start and end.

TEST(Netpoller, EveryRuntimeHasItsOwn) {
  for (int i = 0; i < scaled(100); ++i) {
    run_with(1 + i % 3, [] {
      TcpPair pair = tcp_pair();
      ASSERT_TRUE(pair.client.write_all("hello"));
      EXPECT_EQ(read_some(pair.server), "hello");
    });
  }
}

TEST(Netpoller, TheRuntimeEndsWithGoroutinesWaitingInIt) {
  for (int i = 0; i < scaled(100); ++i) {
    std::vector<Numbers> numbers;  // what abandoned goroutines use is never closed: done by hand below
    run(RunOptions{.max_procs = 1 + i % 3}, [&numbers, i] {
      for (int n = 0; n < 10; ++n) {
        numbers.push_back(local_numbers());
        go([here = Descriptor::open(numbers.back().here, "test").value()] {
          std::array<std::byte, 16> buffer;
          (void)here->read(buffer);
        });
      }
      if (i % 2 == 0) wait_until_parked(10, WaitReason::kIoRead);
    });
    for (const Numbers& pair : numbers) {
      sys::invoke(SYS_close, pair.here);
      sys::invoke(SYS_close, pair.there);
    }
  }
}

// A connection that outlives its runtime can be closed, with a deadline still running, by any thread and in
// any later runtime.
TEST(Netpoller, AConnectionMayOutliveItsRuntime) {
  std::optional<TcpPair> first, second;
  run(RunOptions{.max_procs = 2}, [&] {
    first.emplace(tcp_pair());
    second.emplace(tcp_pair());
    for (Conn* conn : {&first->client, &first->server, &second->client, &second->server}) {
      conn->set_deadline(far_away());
    }
  });
  first.reset();
  run_with(2, [&] {
    second.reset();
    TcpPair pair = tcp_pair();
    pair.client.set_read_deadline(Clock::now() + 1ms);
    EXPECT_EQ(read_some(pair.client), "<read: deadline exceeded>");
  });
}

TEST(NetpollerDeathTest, WaitingForTheNetworkIsNoDeadlockButWaitingForNobodyIs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(RunOptions{.max_procs = 2},
                  [] {
                    LocalPair pair = local_pair();
                    WaitGroup never;
                    never.add(1);
                    go([&] {
                      EXPECT_EQ(read_some(*pair.here), "x");
                      never.wait();
                    });
                    wait_until_parked(1, WaitReason::kIoRead);
                    std::thread([&pair, promise = ExternalWaker()] {
                      while (sched_stats().procs_idle != 2) std::this_thread::yield();
                      EXPECT_TRUE(pair.there->write_all(bytes("x")));
                    }).detach();
                    never.wait();
                  }),
              ::testing::ExitedWithCode(2), "deadlock!");
}

}  // namespace
}  // namespace tuza::net::testing
