// Asio operations that goroutines wait for.
#include <tuza/framework/asio_bridge.h>
#include <tuza/framework/asio_endpoint.h>
#include <tuza/framework/tests/asio_testing.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/udp.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using testing::operation;
using testing::run_with;
using testing::scaled;
using testing::WithProcs;

class AsioBridgeTest : public WithProcs {};
TUZA_WITH_PROCS(AsioBridgeTest);

// Echoes on every connection until the server is destroyed.
class EchoServer {
 public:
  EchoServer() {
    serving_.go([this] {
      (void)net::serve(listener_, [](net::Conn& conn) {
        std::array<std::byte, 4096> space;
        while (auto n = conn.read(space)) {
          if (*n == 0 || !conn.write_all(std::span(space).first(*n))) break;
        }
      });
    });
  }
  ~EchoServer() {
    listener_.close();
    serving_.wait();
  }
  [[nodiscard]] tcp::endpoint endpoint() const { return {asio::ip::address_v4::loopback(), port()}; }
  [[nodiscard]] std::uint16_t port() const { return listener_.endpoint().port(); }

 private:
  net::Listener listener_ = net::listen("tcp", "127.0.0.1:0").value();
  WaitGroup serving_;
};

TEST(AsioEndpoint, IsTheSameInBothLibraries) {
  for (const char* text : {"127.0.0.1:80", "[2001:db8::1]:65535", "0.0.0.0:0"}) {
    const net::Endpoint endpoint = net::parse_endpoint(text).value();
    const tcp::endpoint theirs = to_asio<tcp>(endpoint);
    std::ostringstream out;
    out << theirs;
    EXPECT_EQ(out.str(), text);
    EXPECT_EQ(from_asio(theirs), endpoint);
    EXPECT_EQ(from_asio(to_asio<asio::ip::udp>(endpoint)), endpoint);
  }
}

TEST_P(AsioBridgeTest, ATimerTakesItsTime) {
  run_with(GetParam(), [] {
    AsioContext context;
    const auto before = std::chrono::steady_clock::now();  // the time of the timer begins when it is made
    asio::steady_timer timer(context.io(), 20ms);
    EXPECT_TRUE(timer.async_wait(use_goroutine));
    EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
  });
}

TEST_P(AsioBridgeTest, ATimerLetsOthersRunMeanwhile) {
  run_with(GetParam(), [procs = GetParam()] {
    AsioContext context;
    std::atomic<bool> others_ran{false};
    WaitGroup others;
    others.go([&] { others_ran = true; });
    int waits = 0;
    for (; !others_ran; ++waits) {
      asio::steady_timer timer(context.io(), 1ms);
      EXPECT_TRUE(timer.async_wait(use_goroutine));
    }
    // With several Ps, the kernel may take its core from the thread that was about to run the other.
    if (procs == 1) {
      EXPECT_EQ(waits, 1);
    }
    others.wait();
  });
}

TEST_P(AsioBridgeTest, ResolvesConnectsWritesAndReads) {
  run_with(GetParam(), [] {
    EchoServer server;
    AsioContext context;
    tcp::resolver resolver(context.io());
    const Result<tcp::resolver::results_type> found =
        resolver.async_resolve("127.0.0.1", std::to_string(server.port()), use_goroutine);
    ASSERT_TRUE(found) << found.error().message();
    tcp::socket socket(context.io());
    const Result<tcp::endpoint> connected = asio::async_connect(socket, *found, use_goroutine);
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(connected->port(), server.port());
    const std::string sent(100'000, 'x');
    WaitGroup writing;
    writing.go([&] {
      const Result<std::size_t> written = asio::async_write(socket, asio::buffer(sent), use_goroutine);
      EXPECT_EQ(written.value_or(0), sent.size());
    });
    std::string received(sent.size(), '\0');
    const Result<std::size_t> read = asio::async_read(socket, asio::buffer(received), use_goroutine);
    writing.wait();
    EXPECT_EQ(read.value_or(0), sent.size());
    EXPECT_EQ(received, sent);
  });
}

TEST_P(AsioBridgeTest, NamesAreResolvedOnAsiosThread) {
  run_with(GetParam(), [] {
    AsioContext context;
    tcp::resolver resolver(context.io());
    // A numeric address takes the same path, and needs no /etc/hosts, which a minimal machine may not have.
    const auto found = resolver.async_resolve("127.0.0.1", "80", use_goroutine);
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_TRUE(found->begin()->endpoint().address().is_loopback());
    const auto nobody = resolver.async_resolve("no-such-host.invalid", "80", use_goroutine);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().op(), "asio");
  });
}

TEST_P(AsioBridgeTest, ASignalWakesItsWaiter) {
  run_with(GetParam(), [] {
    AsioContext context;
    asio::signal_set signals(context.io(), SIGUSR1);
    for (int i = 0; i < 3; ++i) {
      WaitGroup sender;
      sender.go([] { kill(getpid(), SIGUSR1); });
      const Result<int> number = signals.async_wait(use_goroutine);
      EXPECT_EQ(number.value_or(0), SIGUSR1);
      sender.wait();
    }
  });
}

TEST_P(AsioBridgeTest, HundredsAtOnceOnTwoContexts) {
  run_with(GetParam(), [] {
    EchoServer server;
    AsioContext contexts[2];
    std::atomic<int> answered{0};
    const int clients = scaled(200) + 20;
    WaitGroup group;
    for (int i = 0; i < clients; ++i) {
      group.go([&, i] {
        asio::io_context& io = contexts[i % 2].io();
        tcp::socket socket(io);
        ASSERT_TRUE(socket.async_connect(server.endpoint(), use_goroutine));
        asio::steady_timer timer(io);
        for (int round = 0; round < 5; ++round) {
          const std::string text = std::to_string(i * 10 + round);
          ASSERT_TRUE(asio::async_write(socket, asio::buffer(text), use_goroutine));
          std::string echo(text.size(), '\0');
          ASSERT_TRUE(asio::async_read(socket, asio::buffer(echo), use_goroutine));
          ASSERT_EQ(echo, text);
          timer.expires_after(1ms);
          ASSERT_TRUE(timer.async_wait(use_goroutine));
        }
        ++answered;
      });
    }
    group.wait();
    EXPECT_EQ(answered, clients);
  });
}

TEST_P(AsioBridgeTest, AnErrorIsAResult) {
  run_with(GetParam(), [] {
    AsioContext context;
    tcp::socket socket(context.io());
    tcp::socket bound(context.io(), {asio::ip::address_v4::loopback(), 0});  // and does not listen
    const Result<void> refused = socket.async_connect(bound.local_endpoint(), use_goroutine);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(std::errc::connection_refused));
    EXPECT_EQ(refused.error().message(), "asio: Connection refused");
  });
}

TEST_P(AsioBridgeTest, AWrappedTokenKeepsWhatCameBeforeTheError) {
  run_with(GetParam(), [] {
    AsioContext context;
    net::Listener listener = net::listen("tcp", "127.0.0.1:0").value();
    const tcp::endpoint there(asio::ip::address_v4::loopback(), listener.endpoint().port());
    const auto five_bytes_and_the_end = [&](tcp::socket& socket) {
      ASSERT_TRUE(socket.async_connect(there, use_goroutine));
      net::Conn peer = listener.accept().value();
      ASSERT_TRUE(peer.write_all(std::as_bytes(std::span("12345", 5))));
    };
    std::array<char, 100> space{};
    tcp::socket first(context.io());
    five_bytes_and_the_end(first);
    std::error_code error;
    EXPECT_EQ(asio::async_read(first, asio::buffer(space), asio::redirect_error(use_goroutine, error)), 5u);
    EXPECT_EQ(error, asio::error::eof);
    tcp::socket second(context.io());
    five_bytes_and_the_end(second);
    const Result<std::size_t> cut = asio::async_read(second, asio::buffer(space), use_goroutine);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code(), asio::error::eof);
  });
}

TEST_P(AsioBridgeTest, ReturnsWhatTheSignatureSays) {
  run_with(GetParam(), [] {
    AsioContext context;
    const auto later = [&](auto call) { asio::post(context.io(), std::move(call)); };
    operation<void()>(use_goroutine,
                      [&](auto handler) { later([handler = std::move(handler)]() mutable { handler(); }); });
    std::unique_ptr<int> moved = operation<void(std::unique_ptr<int>)>(use_goroutine, [&](auto handler) {
      later([handler = std::move(handler)]() mutable { handler(std::make_unique<int>(7)); });
    });
    EXPECT_EQ(*moved, 7);
    Result<std::unique_ptr<int>> either =
        operation<void(std::error_code, std::unique_ptr<int>)>(use_goroutine, [&](auto handler) {
          later([handler = std::move(handler)]() mutable {
            handler(std::error_code(), std::make_unique<int>(8));
          });
        });
    ASSERT_TRUE(either);
    EXPECT_EQ(**either, 8);
    const Result<std::tuple<int, std::string>> two =
        operation<void(std::error_code, int, std::string)>(use_goroutine, [&](auto handler) {
          later([handler = std::move(handler)]() mutable { handler(std::error_code(), 1, "two"); });
        });
    ASSERT_TRUE(two);
    EXPECT_EQ(*two, std::tuple(1, std::string("two")));
    EXPECT_THROW(operation<void(std::exception_ptr, int)>(
                     use_goroutine,
                     [&](auto handler) {
                       later([handler = std::move(handler)]() mutable {
                         handler(std::make_exception_ptr(std::out_of_range("far")), 0);
                       });
                     }),
                 std::out_of_range);
    EXPECT_EQ(
        operation<void(std::exception_ptr, int)>(use_goroutine, [](auto handler) { handler(nullptr, 3); }),
        3);
  });
}

// Throws when it is copied for the goroutine, on the completing thread.
struct Reluctant {
  Reluctant() = default;
  Reluctant(const Reluctant&) { throw std::length_error("no copies"); }
};

TEST_P(AsioBridgeTest, WhatIsThrownComesToTheGoroutine) {
  run_with(GetParam(), [] {
    AsioContext context;
    EXPECT_THROW(operation<void(std::error_code, Reluctant)>(
                     use_goroutine,
                     [&](auto handler) {
                       asio::post(context.io(), [handler = std::move(handler)]() mutable {
                         const Reluctant value;
                         handler(std::error_code(), value);
                       });
                     }),
                 std::length_error);
    // Before the wait has begun; in the middle of it, with the completion already on its way.
    EXPECT_THROW(operation<void(std::error_code)>(use_goroutine, [](auto) { throw std::domain_error("no"); }),
                 std::domain_error);
    std::thread late;
    EXPECT_THROW(operation<void(std::error_code)>(use_goroutine,
                                                  [&](auto handler) {
                                                    late =
                                                        std::thread([handler = std::move(handler)]() mutable {
                                                          std::this_thread::sleep_for(5ms);
                                                          handler(std::error_code());
                                                        });
                                                    throw std::domain_error("too late");
                                                  }),
                 std::domain_error);
    late.join();
  });
}

// At once, from other threads, and racing with the park.
// An object of which every operation must begin, and end, on one thread.
class OneThreadOnly {
 public:
  explicit OneThreadOnly(asio::io_context& io) : io_(io) {}
  enum class Ends { kAtOnce, kNever, kByThrowing };
  template <class Token>
  auto async_count(Ends ends, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code, int)>(
        [this](auto handler, Ends how) {
          if (thread_ == std::thread::id()) thread_ = std::this_thread::get_id();
          EXPECT_EQ(thread_, std::this_thread::get_id());
          ++count_;
          if (how == Ends::kByThrowing) throw std::runtime_error("on purpose");
          if (how == Ends::kAtOnce) {
            asio::post(
                io_, [handler = std::move(handler), n = count_]() mutable { handler(std::error_code(), n); });
            return;
          }
          const auto timer = std::make_shared<asio::steady_timer>(io_, 1h);
          timer->async_wait(asio::bind_cancellation_slot(
              handler.get_cancellation_slot(),
              [timer, handler = std::move(handler)](std::error_code error) mutable { handler(error, 0); }));
          endless_.done();
        },
        token, ends);
  }
  int count_ = 0;
  WaitGroup endless_;  // calls of kNever that have yet to begin

 private:
  asio::io_context& io_;
  std::thread::id thread_;
};

TEST_P(AsioBridgeTest, OnAnExecutorGoroutinesShareAnObject) {
  run_with(GetParam(), [] {
    using Ends = OneThreadOnly::Ends;
    AsioContext context;
    OneThreadOnly object(context.io());
    const auto executor = context.io().get_executor();
    const auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup users;
    object.endless_.add(50);
    for (int i = 0; i < 50; ++i) {
      users.go([&] { EXPECT_GT(object.async_count(Ends::kAtOnce, use_goroutine.on(executor)).value(), 0); });
      users.go([&, ctx = ctx] {
        const auto ended = object.async_count(Ends::kNever, use_goroutine.on(executor, ctx));
        EXPECT_TRUE(!ended && ended.error().cancelled());
      });
      users.go([&] {
        EXPECT_THROW((void)object.async_count(Ends::kByThrowing, use_goroutine.on(executor)),
                     std::runtime_error);
      });
    }
    object.endless_.wait();  // a call whose context ends before its turn never begins, and would not count
    cancel();
    users.wait();
    EXPECT_EQ(object.async_count(Ends::kAtOnce, use_goroutine.on(executor)).value(), 151);
  });
}

TEST_P(AsioBridgeTest, OnAnExecutorThatIsGoneNothingBegins) {
  run_with(GetParam(), [] {
    auto io = std::make_unique<asio::io_context>();
    OneThreadOnly object(*io);
    const auto executor = io->get_executor();
    WaitGroup waiting;
    waiting.go([&] {
      const auto lost = object.async_count(OneThreadOnly::Ends::kAtOnce, use_goroutine.on(executor));
      EXPECT_EQ(lost.error().code(), Errc::kClosed);
    });
    testing::wait_until_all_park();
    io.reset();  // nobody has run it
    waiting.wait();
    EXPECT_EQ(object.count_, 0);
  });
}

TEST_P(AsioBridgeTest, AnyThreadMayCompleteAtAnyTime) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(20'000); ++i) {
      ASSERT_EQ(operation<void(int)>(use_goroutine, [i](auto handler) { handler(i); }), i);
    }
    AsioContext context;
    for (int i = 0; i < scaled(5'000); ++i) {
      const int got = operation<void(int)>(use_goroutine, [&](auto handler) {
        asio::post(context.io(), [i, handler = std::move(handler)]() mutable { handler(i); });
      });
      ASSERT_EQ(got, i);
    }
    for (int i = 0; i < scaled(500); ++i) {
      std::thread thread;
      const int got = operation<void(int)>(use_goroutine, [&](auto handler) {
        thread = std::thread([i, handler = std::move(handler)]() mutable { handler(i); });
      });
      thread.join();
      ASSERT_EQ(got, i);
    }
  });
}

}  // namespace
}  // namespace tuza
