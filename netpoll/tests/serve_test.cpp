// The accept loop: a goroutine per connection, the connection limit, graceful shutdown.
#include <tuza/netpoll/listen_and_serve.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/goroutine_local.h>
#include <tuza/sched/try.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::net::testing {
namespace {

class ServeTest : public WithProcs {};
TUZA_WITH_PROCS(ServeTest);

// A server that runs until the end of a scope.
class Running {
 public:
  explicit Running(Server::Handler handler, const ServeOptions& options = {})
      : server_(listen_on_loopback(), std::move(handler), options) {
    serving_.go([this] { EXPECT_TRUE(server_.serve()); });
  }
  ~Running() {
    if (!shut_down_) server_.shutdown(Clock::now());
    serving_.wait();
  }
  bool shutdown(TimePoint deadline) {
    shut_down_ = true;
    return server_.shutdown(deadline);
  }
  Conn dial() { return net::dial("tcp", to_string(server_.endpoint())).value(); }
  Server& operator*() { return server_; }
  Server* operator->() { return &server_; }

 private:
  Server server_;
  WaitGroup serving_;
  bool shut_down_ = false;
};

TEST_P(ServeTest, EachConnectionHasAGoroutineOfItsOwn) {
  run_with(GetParam(), [] {
    Running server(&echo);
    std::vector<Conn> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(server.dial());
    // All connections are open, and each is answered at any time.
    for (int round = 0; round < 3; ++round) {
      for (Conn& client : clients) ASSERT_TRUE(answers(client));
    }
    EXPECT_EQ(server->connections(), 20u);
    clients.clear();
    yield_until([&] { return server->connections() == 0; });
  });
}

TEST_P(ServeTest, AConnectionIsClosedWhenItsHandlerReturns) {
  run_with(GetParam(), [] {
    Running server([](Session& session) { (void)session.conn().write_all("bye"); });
    Conn client = server.dial();
    EXPECT_EQ(read_to_end(client), "bye");
  });
}

TEST_P(ServeTest, TheShortFormServesUntilTheListenerIsClosed) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    WaitGroup group;
    group.go(
        [&] { EXPECT_TRUE(serve(listener, [](Conn& conn) { (void)conn.write_all(read_some(conn)); })); });
    Conn client = dial("tcp", to_string(listener.endpoint())).value();
    EXPECT_TRUE(answers(client));
    listener.close();
    group.wait();
  });
}

// -- The limit.

TEST_P(ServeTest, NoMoreConnectionsThanAllowedAndTheOthersQueue) {
  run_with(GetParam(), [] {
    constexpr std::size_t kMax = 3;
    std::atomic<std::size_t> inside{0}, most{0};
    Running server(
        [&](Session& session) {
          const std::size_t now = ++inside;
          for (std::size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          // Not idle meanwhile, so that none has to make room.
          for (std::string got;
               !(got = read_some(session.conn())).empty() && session.conn().write_all(got);) {
          }
          --inside;
        },
        {.max_connections = kMax});
    std::vector<Conn> first;
    for (std::size_t i = 0; i < kMax; ++i) first.push_back(server.dial());
    for (Conn& client : first) ASSERT_TRUE(answers(client));
    std::atomic<int> answered{0};
    WaitGroup group;
    for (int i = 0; i < 30; ++i) {
      group.go([&] {
        Conn client = server.dial();
        EXPECT_TRUE(answers(client));
        ++answered;
      });
    }
    wait_until_parked(30 + kMax, WaitReason::kIoRead);  // clients for an answer, handlers for a question
    EXPECT_EQ(server->connections(), kMax);
    EXPECT_EQ(answered, 0);
    for (Conn& client : first) ASSERT_TRUE(answers(client));
    first.clear();
    group.wait();
    EXPECT_EQ(answered, 30);
    EXPECT_EQ(most, kMax);
  });
}

// -- The end.

TEST_P(ServeTest, ShutdownEndsIdleSessionsAtOnceAndRefusesNewOnes) {
  run_with(GetParam(), [] {
    Running server(&echo);
    std::vector<Conn> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(server.dial());
    for (Conn& client : clients) ASSERT_TRUE(answers(client));
    EXPECT_TRUE(server.shutdown(far_away())) << "nobody had to be forced";
    for (Conn& client : clients) EXPECT_EQ(read_some(client), "");
    EXPECT_FALSE(dial("tcp", to_string(server->endpoint())));
  });
}

TEST_P(ServeTest, ShutdownLetsBusySessionsFinish) {
  run_with(GetParam(), [] {
    std::atomic<bool> busy{false}, finish{false};
    Running server([&](Session& session) {
      ASSERT_TRUE(session.begin_idle());
      const std::string question = read_some(session.conn());
      session.end_idle();
      busy = true;
      EXPECT_EQ(read_some(session.conn()), "the rest") << "a read that is not idle is not interrupted";
      yield_until([&] { return finish.load(); });
      EXPECT_TRUE(session.draining());
      EXPECT_TRUE(session.conn().write_all(question));
      EXPECT_FALSE(session.begin_idle()) << "no further request";
    });
    Conn client = server.dial();
    ASSERT_TRUE(client.write_all("question"));
    yield_until([&] { return busy.load(); });
    std::atomic<bool> down{false};
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(server.shutdown(far_away()));
      down = true;
    });
    wait_until_parked(1, WaitReason::kSleep);  // in shutdown(), waiting for the session
    ASSERT_TRUE(client.write_all("the rest"));
    EXPECT_FALSE(down);
    finish = true;
    group.wait();
    EXPECT_EQ(read_to_end(client), "question");
  });
}

// The request arrives at the moment of the shutdown: the session is interrupted, or it is served to the end.
TEST_P(ServeTest, ASessionThatCeasesToBeIdleJustThenIsNotInterrupted) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(300); ++i) {
      std::atomic<bool> idle{false};
      Running server([&](Session& session) {
        idle = true;
        if (!session.begin_idle()) return;
        const std::string first = read_some(session.conn());
        session.end_idle();
        if (first != "question") return;
        EXPECT_EQ(read_some(session.conn()), "the rest");
        EXPECT_TRUE(session.conn().write_all("answer"));
      });
      Conn client = server.dial();
      yield_until([&] { return idle.load(); });
      WaitGroup group;
      group.go([&] { (void)client.write_all("question"); });
      std::atomic<bool> down{false};
      group.go([&] {
        EXPECT_TRUE(server.shutdown(far_away()));
        down = true;
      });
      yield_until([&] { return down || goroutines_waiting(WaitReason::kSleep) == 1; });
      (void)client.write_all("the rest");
      group.wait();
    }
  });
}

// Between the start of shutdown() and its scan of the sessions: a session that was told then is not
// interrupted later.
TEST_P(ServeTest, ASessionThatIsToldOfTheEndIsNotInterrupted) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(100); ++i) {
      std::atomic<bool> begun{false}, told{false};
      Running server([&](Session& session) {
        begun = true;
        while (!session.draining()) yield();
        EXPECT_FALSE(session.begin_idle());
        told = true;
        EXPECT_EQ(read_some(session.conn()), "the last request");
      });
      Conn client = server.dial();
      yield_until([&] { return begun.load(); });
      WaitGroup group;
      group.go([&] { EXPECT_TRUE(server.shutdown(far_away())); });
      yield_until([&] { return told && goroutines_waiting(WaitReason::kSleep) >= 1; });
      (void)client.write_all("the last request");
      group.wait();
    }
  });
}

TEST_P(ServeTest, TheDeadlineOfShutdownForcesTheRemainingConnections) {
  run_with(GetParam(), [] {
    std::atomic<int> reading{0}, forced{0};
    Running server([&](Session& session) {
      ++reading;
      if (read_some(session.conn()).starts_with("<read: use of a closed")) ++forced;
    });
    std::vector<Conn> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(server.dial());
    yield_until([&] { return reading == 5; });
    EXPECT_FALSE(server.shutdown(Clock::now() + 2ms));
    EXPECT_EQ(forced, 5);
    EXPECT_EQ(server->connections(), 0u);
  });
}

// A connection that was accepted at the last moment, and whose handler runs only after the others were
// forced, must not be forgotten: shutdown() would wait for its silent client for ever.
TEST_P(ServeTest, TheDeadlineForcesAlsoASessionThatBeginsJustThen) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(300); ++i) {
      Running server([](Session& session) { (void)read_some(session.conn()); });
      Conn client = server.dial();
      yield_until([&] { return server->connections() == 1; });
      server.shutdown(long_ago());
      EXPECT_EQ(server->connections(), 0u);
    }
  });
}

// A connection that was accepted just before the listener was closed, and is not counted yet.
TEST_P(ServeTest, ShutdownForgetsNoConnectionThatIsAcceptedJustThen) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(300); ++i) {
      // The handler does not ask whether the server is draining, and its client is silent.
      Running server([](Session& session) { (void)read_some(session.conn()); });
      std::optional<Conn> client;
      WaitGroup dialing;
      dialing.go([&] {
        Result<Conn> dialed = net::dial("tcp", to_string(server->endpoint()));
        if (dialed) client.emplace(std::move(*dialed));
      });
      for (int turns = i % 8; turns > 0; --turns) yield();
      server.shutdown(Clock::now() + 100us);
      dialing.wait();
    }  // if serve() does not return, this never ends
  });
}

TEST_P(ServeTest, AHandlerThatDoesNotEndHoldsUpNeitherShutdownNorServe) {
  run_with(GetParam(), [] {
    std::atomic<bool> end{false};
    Server server(listen_on_loopback(), [&](Session&) {
      while (!end) sleep_for(1ms);
    });
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    Conn client = dial("tcp", to_string(server.endpoint())).value();
    yield_until([&] { return server.connections() == 1; });
    const TimePoint begin = Clock::now();
    EXPECT_FALSE(server.shutdown(Clock::now() + 10ms));
    EXPECT_GE(Clock::now() - begin, Server::kNoticeTime);
    serving.wait();
    EXPECT_EQ(server.connections(), 1u) << "that one is still there";
    EXPECT_EQ(read_to_end(client), "") << "but its connection is not";
    end = true;
    yield_until([&] { return server.connections() == 0; });
  });
}

TEST_P(ServeTest, ShutdownComesThroughWhileTheServerIsFull) {
  run_with(GetParam(), [] {
    Running server(&echo, {.max_connections = 1});
    Conn first = server.dial();
    ASSERT_TRUE(answers(first));
    Conn waits = server.dial();
    EXPECT_TRUE(server.shutdown(far_away()));
    EXPECT_EQ(read_some(first), "");
    // The connection in the backlog was never accepted: the system resets it when the listener closes.
    EXPECT_NE(read_some(waits), "hello");
  });
}

TEST_P(ServeTest, ShutdownBeforeServeMeansThatNothingIsServed) {
  run_with(GetParam(), [] {
    Server server(listen_on_loopback(), &echo);
    EXPECT_TRUE(server.shutdown(far_away()));
    EXPECT_TRUE(server.serve());
  });
}

[[gnu::noinline]] std::size_t use_stack(std::size_t bytes) {
  char frame[1024];
  std::fill(std::begin(frame), std::end(frame), static_cast<char>(bytes));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return bytes < sizeof frame ? 0 : use_stack(bytes - sizeof frame) + (frame[bytes % sizeof frame] != 1);
}

// What handlers call may recurse as deep as a client's text is long.
TEST_P(ServeTest, HandlersHaveTheStackThatTheOptionsSay) {
  run_with(GetParam(), [] {
    for (const bool more : {false, true}) {
      Running server(
          [more](Session& session) {
            EXPECT_GT(use_stack(more ? 4 << 20 : 500 << 10), 0U);
            echo(session);
          },
          more ? ServeOptions{.stack_bytes = 8 << 20} : ServeOptions{});
      Conn client = server.dial();
      EXPECT_TRUE(answers(client));
    }
  });
}

struct HandlerLocal {
  int* into = nullptr;
  ~HandlerLocal() {
    sleep_for(200us);
    if (into != nullptr) ++*into;
  }
};
const GoroutineLocal<HandlerLocal> g_handler_local;

TEST_P(ServeTest, GoroutineLocalsOfHandlersAreGoneWhenNoConnectionIsLeft) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(50) + 2; ++i) {
      int gone = 0;
      {
        Running server([&gone](Session& session) {
          g_handler_local->into = &gone;
          echo(session);
        });
        Conn client = server.dial();
        ASSERT_TRUE(answers(client));
        client.close();
        EXPECT_TRUE(server.shutdown(far_away()));
      }
      ASSERT_EQ(gone, 1);
    }
  });
}

std::atomic<int> g_failures{0};

TEST_P(ServeTest, TheErrorOfAHandlerIsLoggedUnlessTheClientHasGone) {
  run_with(GetParam(), [] {
    g_failures = 0;
    set_log_sink([](LogLevel, std::string_view line) {
      if (line.starts_with("tuza: connection from 127.0.0.1:")) ++g_failures;
      if (line.contains(": no store today")) g_failures += 100;
    });
    Listener listener = listen_on_loopback();
    const std::string address = listener.address();
    WaitGroup serving;
    serving.go([&] {
      EXPECT_TRUE(serve(listener, [](Conn& conn) -> Result<void> {
        std::array<std::byte, 1> asked;
        TUZA_TRY(conn.read_full(asked));
        return std::unexpected(errorf("no store today"));
      }));
    });
    {
      const Conn goes = dial("tcp", address).value();
    }
    {
      Conn resets = dial("tcp", address).value();
      EXPECT_TRUE(resets.set_linger_zero());
    }
    do {
      Conn asks = dial("tcp", address).value();
      EXPECT_TRUE(asks.write_all("?"));
      EXPECT_EQ(read_to_end(asks), "");
      sleep_for(20ms);
    } while (g_failures == 0);  // another test may have used the line of this second
    listener.close();
    serving.wait();
    set_log_sink(nullptr);
    EXPECT_EQ(g_failures % 100, g_failures / 100) << "nothing else is logged";
  });
}

TEST_P(ServeTest, AHandlerMayFailAfterItHasMovedItsConnectionAway) {
  run_with(GetParam(), [] {
    const TemporaryDirectory directory;
    const std::string path = directory / "socket";
    Listener listeners[] = {listen_on_loopback(), listen("unix", path).value()};
    for (Listener& listener : listeners) {
      const bool unix = listener.address() != to_string(listener.endpoint());
      WaitGroup serving;
      serving.go([&] {
        EXPECT_TRUE(serve(listener, [](Conn& conn) -> Result<void> {
          const Conn mine = std::move(conn);
          return std::unexpected(errorf("no store today"));
        }));
      });
      Conn client = dial(unix ? "unix" : "tcp", unix ? path : listener.address()).value();
      EXPECT_EQ(read_to_end(client), "");
      listener.close();
      serving.wait();
    }
  });
}

TEST_P(ServeTest, WithoutAHandlerNothingIsServed) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    void (*const none)(Conn&) = nullptr;
    Result<void> (*const none_with_result)(Conn&) = nullptr;
    EXPECT_THROW((void)serve(listener, none), std::invalid_argument);
    EXPECT_THROW((void)serve(listener, none_with_result), std::invalid_argument);
    EXPECT_THROW((void)listen_and_serve("127.0.0.1:0", none_with_result), std::invalid_argument);
    EXPECT_THROW(Server(listener, nullptr), std::invalid_argument);
  });
}

}  // namespace
}  // namespace tuza::net::testing
