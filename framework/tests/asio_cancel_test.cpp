// Early ends of waits for Asio's operations: contexts, Asio contexts that are destroyed, runtimes that end,
// misuse.
#include <tuza/framework/asio_bridge.h>
#include <tuza/framework/tests/asio_testing.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/listener.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#if defined(TUZA_ASAN)
// The objects of a goroutine abandoned at the end of a runtime are never freed: these tests abandon some.
extern "C" const char* __lsan_default_suppressions() { return "leak:AsioCancelTest_TheRuntimeEnds\n"; }
#endif

namespace tuza {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using testing::operation;
using testing::operation_on;
using testing::run_with;
using testing::scaled;
using testing::WithProcs;
using testing::yield_until;

class AsioCancelTest : public WithProcs {};
TUZA_WITH_PROCS(AsioCancelTest);

TEST_P(AsioCancelTest, AContextEndsTheWait) {
  run_with(GetParam(), [] {
    AsioContext asio;
    asio::steady_timer timer(asio.io(), 1h);
    const auto [ctx, cancel] = with_cancel(Context());
    WaitGroup canceller;
    canceller.go([&] { cancel(Error(Errc::kBadMessage, "enough")); });
    const Result<void> waited = timer.async_wait(use_goroutine(ctx));
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().message(), Error(Errc::kBadMessage, "enough").message());
    canceller.wait();
    // The timer is still usable.
    timer.expires_after(1ms);
    EXPECT_TRUE(timer.async_wait(use_goroutine));
  });
}

TEST_P(AsioCancelTest, OneThatHasEndedKeepsItFromBeginning) {
  run_with(GetParam(), [] {
    AsioContext asio;
    asio::steady_timer timer(asio.io(), 0s);
    const auto [ctx, cancel] = with_cancel(Context());
    cancel();
    const Result<void> waited = timer.async_wait(use_goroutine(ctx));
    ASSERT_FALSE(waited);
    EXPECT_TRUE(waited.error().cancelled());
  });
}

TEST_P(AsioCancelTest, ADeadlineEndsAReadAndLeavesTheSocketUsable) {
  run_with(GetParam(), [] {
    AsioContext asio;
    net::Listener listener = net::listen("tcp", "127.0.0.1:0").value();
    tcp::socket socket(asio.io());
    ASSERT_TRUE(
        socket.async_connect({asio::ip::address_v4::loopback(), listener.endpoint().port()}, use_goroutine));
    net::Conn peer = listener.accept().value();
    std::array<char, 10> space{};
    for (int i = 0; i < 3; ++i) {
      const auto [ctx, cancel] = with_timeout(Context(), 5ms);
      const Result<std::size_t> one = socket.async_read_some(asio::buffer(space), use_goroutine(ctx));
      ASSERT_FALSE(one);
      EXPECT_TRUE(one.error().timeout());
      const auto [again, cancel_again] = with_timeout(Context(), 5ms);
      const Result<std::size_t> all = asio::async_read(socket, asio::buffer(space), use_goroutine(again));
      ASSERT_FALSE(all);
      EXPECT_TRUE(all.error().timeout());
    }
    ASSERT_TRUE(peer.write_all(std::as_bytes(std::span("0123456789", 10))));
    const auto [ctx, cancel] = with_timeout(Context(), 1h);
    EXPECT_EQ(asio::async_read(socket, asio::buffer(space), use_goroutine(ctx)).value_or(0), 10u);
  });
}

// Whichever wins, there is one result, and nothing is touched afterwards (the sanitizers check it).
TEST_P(AsioCancelTest, CancellationRacesWithCompletion) {
  run_with(GetParam(), [] {
    AsioContext asio;
    int completed = 0, cancelled = 0;
    // Continues until both have happened: timer and canceller take longer from round to round, for machines
    // of any speed.
    for (int i = 0; i < scaled(2'000) || completed == 0 || cancelled == 0; ++i) {
      asio::steady_timer timer(asio.io(), std::chrono::microseconds(i % 50 * (1 + i / 50)));
      const auto [ctx, cancel] = with_cancel(Context());
      WaitGroup canceller;
      canceller.go([&] {
        const auto late = std::chrono::microseconds(i % 7 * (i / 50) * (i / 50) / 4);
        if (late > 0us) sleep_for(late);
        cancel();
      });
      const Result<void> waited = timer.async_wait(use_goroutine(ctx));
      if (waited) {
        ++completed;
      } else {
        ASSERT_TRUE(waited.error().cancelled()) << waited.error().message();
        ++cancelled;
      }
      canceller.wait();
    }
  });
}

TEST_P(AsioCancelTest, HundredsEndWithOneContext) {
  run_with(GetParam(), [] {
    AsioContext asio;
    const auto [ctx, cancel] = with_cancel(Context());
    std::atomic<int> waiting{0}, ended{0};
    const int n = scaled(300) + 20;
    WaitGroup group;
    for (int i = 0; i < n; ++i) {
      group.go([&, ctx = ctx] {
        asio::steady_timer timer(asio.io(), 1h);
        ++waiting;
        if (const Result<void> waited = timer.async_wait(use_goroutine(ctx)); !waited) ++ended;
      });
    }
    yield_until([&] { return waiting == n; });
    cancel();
    group.wait();
    EXPECT_EQ(ended, n);
  });
}

// An operation that cannot be cancelled is waited for, and succeeds, although the context had ended before.
TEST_P(AsioCancelTest, WhatSucceedsAllTheSameHasSucceeded) {
  run_with(GetParam(), [] {
    AsioContext context;
    const auto [ctx, cancel] = with_cancel(Context());
    WaitGroup completer;
    const auto start = [&](auto handler) {
      auto kept = std::make_shared<decltype(handler)>(std::move(handler));
      completer.go([&, kept] {
        cancel();
        sleep_for(1ms);  // what has been cancelled completes
        asio::post(context.io(), [kept] { (*kept)(std::error_code(), 7); });
      });
    };
    const Result<int> got = operation_on<void(std::error_code, int)>(context.io(), use_goroutine(ctx), start);
    EXPECT_TRUE(ctx.done());
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(*got, 7);
    completer.wait();
  });
}

TEST_P(AsioCancelTest, WhenTheIoContextGoesTheWaitEnds) {
  run_with(GetParam(), [] {
    WaitGroup group;
    std::atomic<int> begun{0}, closed{0};
    {
      AsioContext asio;
      asio.io().stop();  // posted work stays queued
      for (int i = 0; i < 10; ++i) {
        group.go([&] {
          const auto post = [&](auto handler) {
            asio::post(asio.io(), [handler = std::move(handler)]() mutable { handler(std::error_code()); });
            ++begun;  // afterwards the context may be destroyed
          };
          const Result<void> ended = operation<void(std::error_code)>(use_goroutine, post);
          if (!ended && ended.error().closed()) ++closed;
        });
      }
      group.go([&] {
        const auto post = [&](auto handler) {
          asio::post(asio.io(), [handler = std::move(handler)]() mutable { handler(1); });
          ++begun;
        };
        EXPECT_THROW(operation<void(int)>(use_goroutine, post), std::future_error);
      });
      yield_until([&] { return begun == 11; });
    }
    group.wait();
    EXPECT_EQ(closed, 10);
  });
}

// The goroutine is abandoned with its buffer on its stack, which is unmapped: the context's thread must not
// write there any more. A second runtime in the same process must find everything in order.
TEST_P(AsioCancelTest, TheRuntimeEndsWhileAGoroutineWaits) {
  for (int round = 0; round < 3; ++round) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::atomic<bool> waits{false};
    const int status = run(RunOptions{.max_procs = GetParam()}, [&] {
      go([&] {
        AsioContext asio;
        asio::local::stream_protocol::socket socket(asio.io(), asio::local::stream_protocol(), ends[0]);
        std::array<char, 4096> space;
        waits = true;
        (void)asio::async_read(socket, asio::buffer(space), use_goroutine);
        ADD_FAILURE() << "the read has ended";
      });
      yield_until([&] { return waits.load(); });
      return write(ends[1], "some", 4) == 4 ? 0 : 1;
    });
    EXPECT_EQ(status, 0);
    EXPECT_EQ(write(ends[1], "more", 4), 4);
    close(ends[0]);
    close(ends[1]);
  }
}

// The goroutine is abandoned in its second wait, for an operation that ignores cancellation. The completion
// comes while another runtime runs, which must not take the goroutine for one of its own.
TEST_P(AsioCancelTest, ACompletionAfterTheRunWakesNobody) {
  asio::io_context io;
  std::move_only_function<void()> complete;
  std::atomic<bool> resumed{false};
  run(RunOptions{.max_procs = GetParam()}, [&] {
    const auto [ctx, cancel] = with_cancel(Context());
    std::atomic<bool> begun{false};
    go([&, ctx = ctx] {
      const auto start = [&](auto handler) {
        complete = [handler = std::move(handler)]() mutable { handler(std::error_code(), 7); };
        begun = true;
      };
      (void)operation_on<void(std::error_code, int)>(io, use_goroutine(ctx), start);
      resumed = true;
    });
    yield_until([&] { return begun.load(); });
    cancel();
    sleep_for(20ms);
  });
  run_with(GetParam(), [&] {
    std::thread(std::move(complete)).join();
    sleep_for(20ms);
  });
  EXPECT_FALSE(resumed);
}

// The owner destroys the context while the runtime ends it.
TEST_P(AsioCancelTest, TheRuntimeEndsWhileAContextIsDestroyed) {
  for (int round = 0; round < scaled(100); ++round) {
    EXPECT_EQ(run(RunOptions{.max_procs = GetParam()},
                  [&] {
                    for (int i = 0; i < 4; ++i) {
                      go([] {
                        for (;;) {
                          AsioContext asio;
                          asio::steady_timer timer(asio.io(), 10us);
                          (void)timer.async_wait(use_goroutine);
                        }
                      });
                    }
                    sleep_for(1ms);
                    return 0;
                  }),
              0);
  }
}

// Alone: nothing else could wake the goroutine.
TEST_P(AsioCancelTest, WaitingForAnotherThreadIsNoDeadlock) {
  run_with(GetParam(), [] {
    std::thread foreign;
    const auto start = [&](auto handler) {
      foreign = std::thread([handler = std::move(handler)]() mutable {
        std::this_thread::sleep_for(50ms);
        handler(5);
      });
    };
    EXPECT_EQ(operation<void(int)>(use_goroutine, start), 5);
    foreign.join();
  });
}

TEST(AsioMisuseDeathTest, ParkingInAnAsioHandlerEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] {
                 asio::io_context io;
                 asio::post(io, [&] {
                   asio::steady_timer timer(io, 1ms);
                   (void)timer.async_wait(use_goroutine);
                 });
                 io.run();
                 return 0;
               }),
               "use_goroutine inside io_context::run");
  EXPECT_DEATH(run([] {
                 AsioContext context;
                 asio::post(context.io(), [&] {
                   asio::steady_timer timer(context.io(), 1ms);
                   (void)timer.async_wait(use_goroutine);
                 });
                 asio::steady_timer timer(context.io(), 1h);
                 (void)timer.async_wait(use_goroutine);
                 return 0;
               }),
               "use_goroutine on a thread that is not a goroutine");
}

}  // namespace
}  // namespace tuza
