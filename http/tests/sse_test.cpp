// Server-sent events: their text, heartbeats, clients that go, and clients that read nothing.
#include <tuza/http/middleware.h>
#include <tuza/http/middleware/timeout.h>
#include <tuza/http/router.h>
#include <tuza/http/sse.h>
#include <tuza/http/testing.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/fake_clock.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class SseTest : public WithProcs {};
TUZA_WITH_PROCS(SseTest);

constexpr EventStreamOptions kQuiet{.heartbeat = 0ms, .write_timeout = 1h};

// What a client gets for one event, in memory.
std::string text_of(const Event& event) {
  const CallResult res = call(
      [&](Request& req, ResponseWriter& writer) {
        auto stream = sse(req, writer, kQuiet);
        EXPECT_TRUE(stream.send(event));
      },
      "GET /");
  EXPECT_TRUE(res.body.starts_with(":\n\n")) << res.body;
  return res.body.substr(3);
}

TEST_P(SseTest, TheTextOfEvents) {
  run_with(GetParam(), [] {
    EXPECT_EQ(text_of({.data = "a"}), "data: a\n\n");
    EXPECT_EQ(text_of({.data = ""}), "data: \n\n");
    EXPECT_EQ(text_of({.data = " a "}), "data:  a \n\n");
    EXPECT_EQ(text_of({.data = "a\nb\r\nc\rd"}), "data: a\ndata: b\ndata: c\ndata: d\n\n");
    EXPECT_EQ(text_of({.data = "\n"}), "data: \ndata: \n\n");
    EXPECT_EQ(text_of({.data = "a\n\rb"}), "data: a\ndata: \ndata: b\n\n");
    EXPECT_EQ(text_of({.data = "a\r"}), "data: a\ndata: \n\n");
    EXPECT_EQ(text_of({.data = "a", .event = "tick", .id = "7", .retry = 1500ms}),
              "id: 7\nevent: tick\nretry: 1500\ndata: a\n\n");
    EXPECT_EQ(text_of({.data = "a\n\nid: 8\nevent: x"}), "data: a\ndata: \ndata: id: 8\ndata: event: x\n\n");
  });
}

TEST_P(SseTest, AnIdOrATypeThatWouldBeAnotherFieldIsRefused) {
  run_with(GetParam(), [] {
    const CallResult res = call(
        [](Request& req, ResponseWriter& writer) {
          auto stream = sse(req, writer, kQuiet);
          using namespace std::string_view_literals;
          for (const std::string_view bad : {"a\nb"sv, "a\rb"sv, "\r\n"sv}) {
            EXPECT_THROW((void)stream.send({.data = "x", .event = bad}), std::invalid_argument);
            EXPECT_THROW((void)stream.send({.data = "x", .id = bad}), std::invalid_argument);
          }
          EXPECT_THROW((void)stream.send({.data = "x", .id = "a\0b"sv}), std::invalid_argument);
          EXPECT_TRUE(stream.send({.data = "still here"}));
        },
        "GET /");
    EXPECT_EQ(res.body, ":\n\ndata: still here\n\n");
  });
}

TEST_P(SseTest, TheHeadAndTheLastEventOfTheClient) {
  run_with(GetParam(), [] {
    const auto handler = [](Request& req, ResponseWriter& writer) {
      auto stream = sse(req, writer, kQuiet);
      (void)stream.send({.data = stream.last_event_id().value_or("none")});
    };
    const CallResult res = call(handler, "GET /", {.headers = {{"Last-Event-ID", "41"}}});
    EXPECT_EQ(res.header("Content-Type"), "text/event-stream");
    EXPECT_EQ(res.header("Cache-Control"), "no-store");
    EXPECT_TRUE(res.streamed);
    EXPECT_TRUE(res.body.ends_with("data: 41\n\n"));
    EXPECT_TRUE(call(handler, "GET /").body.ends_with("data: none\n\n"));
  });
}

TEST_P(SseTest, HeadHasNoEventsAndNoEndlessHandler) {
  run_with(GetParam(), [] {
    const CallResult res = call(
        [](Request& req, ResponseWriter& writer) {
          auto stream = sse(req, writer);
          stream.context().wait();
          EXPECT_TRUE(stream.send({.data = "a"}).error().closed());
        },
        "HEAD /");
    EXPECT_EQ(res.status, 200);
    EXPECT_EQ(res.header("Content-Type"), "text/event-stream");
    EXPECT_FALSE(res.header("Content-Length")) << "GET has none";
    EXPECT_EQ(res.body, "");
  });
}

TEST_P(SseTest, EachEventLeavesAtOnce) {
  run_with(GetParam(), [] {
    Chan<int> next(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res, kQuiet);
      for (int i = 0; i < 3; ++i) {
        (void)next.recv();
        EXPECT_TRUE(stream.send({.data = std::to_string(i)}));
      }
    });
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until([&] { return client.received().ends_with(":\n\n\r\n"); });
    for (int i = 0; i < 3; ++i) {
      next.send(1);
      client.read_until(
          [&] { return client.received().contains("data: " + std::to_string(i) + "\n\n\r\n"); });
    }
    const auto answers = client.read_responses(1);
    EXPECT_TRUE(answers.at(0).complete);
    EXPECT_EQ(answers.at(0).body, ":\n\ndata: 0\n\ndata: 1\n\ndata: 2\n\n");
  });
}

TEST_P(SseTest, WithoutEventsThereAreComments) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res, {.heartbeat = 1ms});
      stream.context().wait();
    });
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until(
        [&] { return client.received().ends_with("3\r\n:\n\n\r\n3\r\n:\n\n\r\n3\r\n:\n\n\r\n"); });
    EXPECT_FALSE(client.closed());
  });
}

TEST_P(SseTest, TheContextEndsWithTheClient) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res);
      stream.context().wait();
      ended.send(stream.context().cause());
    });
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until([&] { return client.received().ends_with(":\n\n\r\n"); });
    client.conn().close();
    EXPECT_TRUE(ended.recv()->closed());
  });
}

TEST_P(SseTest, AtShutdownAStreamMaySayGoodbye) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res);
      stream.context().wait();
      EXPECT_TRUE(stream.send({.data = "bye", .retry = 5s}));
    });
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until([&] { return client.received().ends_with(":\n\n\r\n"); });
    EXPECT_TRUE(server.server().shutdown());
    client.read_until_closed();
    EXPECT_TRUE(client.received().ends_with("retry: 5000\ndata: bye\n\n\r\n0\r\n\r\n")) << client.received();
  });
}

TEST_P(SseTest, ATimeoutOfTheRequestEndsTheContextAndNotTheStream) {
  run_with(GetParam(), [] {
    const auto handler = [](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res, kQuiet);
      stream.context().wait();
      EXPECT_TRUE(stream.context().cause().timeout());
      EXPECT_TRUE(stream.send({.data = "bye"}));
    };
    const std::string whole = ":\n\ndata: bye\n\n";
    EXPECT_EQ(call(with(handler, timeout(20ms)), "GET /").body, whole);
    EXPECT_EQ(call(handler, "GET /", {.server = {.request_timeout = 20ms}}).body, whole);
  });
}

TEST_P(SseTest, AClientThatReadsNothingIsCutOff) {
  run_with(GetParam(), [] {
    Chan<Error> sent(1), context(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res, {.write_timeout = 20ms});
      const std::string large(1 << 18, 'x');
      for (;;) {
        const auto result = stream.send({.data = large});
        if (result) continue;
        sent.send(result.error());
        break;
      }
      stream.context().wait();
      context.send(stream.context().cause());
      EXPECT_FALSE(stream.send({.data = "a"}));
    });
    RawClient client(server.address());
    client.send(get("/"));
    EXPECT_TRUE(sent.recv()->timeout());
    EXPECT_TRUE(context.recv()->timeout());
  });
}

// Over memory: the time of a write timeout takes none.
TEST_P(SseTest, AThousandClientsThatReadNothingAreCutOffAndTheServerAnswersOthers) {
  run_with(GetParam(), [] {
    constexpr std::size_t kStreams = 1000;
    const struct {
      EventStreamOptions stream;
      std::chrono::seconds limit;
      Errc error;
    } cases[] = {{{.write_timeout = 10s}, 10s, Errc::kTimeout},
                 {{.write_timeout = 24h}, 30s, Errc::kClosed}};  // the server's write_timeout
    for (const auto& [options, limit, expected] : cases) {
      tuza::testing::FakeClock clock;
      Chan<Error> ended(kStreams);
      Router router;
      router.handle("GET /plain", [](Request&, ResponseWriter& res) { res.text("plain"); });
      router.handle("GET /events", [&, &given = options](Request& req, ResponseWriter& res) {
        auto stream = sse(req, res, given);
        const std::string data(1000, 'x');
        Result<void> sent;
        while (sent) sent = stream.send({.data = data});
        EXPECT_TRUE(stream.context().done());
        ended.send(sent.error());
      });
      Server server(std::move(router), {.server = {.max_connections = 2 * kStreams}, .buffer_bytes = 4000});
      std::vector<net::Conn> clients;
      for (std::size_t i = 0; i < kStreams; ++i) {
        clients.push_back(server.dial().value());
        ASSERT_TRUE(clients.back().write_all(get("/events")));
      }
      clock.settle();
      EXPECT_EQ(server.server().connections(), kStreams);
      const auto plain = [&server] {
        return server.client().get(Context::background(), server.url("/plain")).value().body().value();
      };
      EXPECT_EQ(plain(), "plain") << "while all of them wait";
      for (std::size_t i = 0; i < kStreams; ++i) {
        const Error error = *ended.recv();
        EXPECT_TRUE(error.is(expected)) << error.message();
      }
      EXPECT_LE(clock.elapsed(), limit + 1s);
      EXPECT_EQ(plain(), "plain");
    }
  });
}

TEST_P(SseTest, SeveralGoroutinesMaySend) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      auto stream = sse(req, res, {.heartbeat = 1ms});
      WaitGroup senders;
      for (int s = 0; s < 4; ++s) {
        senders.go([&stream] {
          for (int i = 0; i < 100; ++i) EXPECT_TRUE(stream.send({.data = "line 1\nline 2"}));
        });
      }
      senders.wait();
    });
    std::string body = fetch(server.address(), get("/")).body;
    std::size_t events = 0;
    const std::string event = "data: line 1\ndata: line 2\n\n", comment = ":\n\n";
    for (std::string_view rest = body; !rest.empty();) {
      const bool is_event = rest.starts_with(event);
      ASSERT_TRUE(is_event || rest.starts_with(comment)) << rest.substr(0, 100);
      events += is_event ? 1 : 0;
      rest.remove_prefix(is_event ? event.size() : comment.size());
    }
    EXPECT_EQ(events, 400u);
  });
}

}  // namespace
}  // namespace tuza::http::testing
