// Request::context(): what ends it, over a real connection; and calls that end with a context.
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/chan.h>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class RequestContextTest : public WithProcs {};
TUZA_WITH_PROCS(RequestContextTest);

const std::string kGet = get("/");

// Waits for the end of its request, and hands out the cause.
Handler waiter(Chan<int>& begun, Chan<Error>& ended) {
  return [&](Request& req, ResponseWriter&) {
    begun.send(1);
    req.context().wait();
    ended.send(req.context().cause());
  };
}

TEST_P(RequestContextTest, EndsWhenTheClientGoes) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    Chan<Error> ended(1);
    TestServer server(waiter(begun, ended));
    for (const bool reset : {false, true}) {
      RawClient client(server.address());
      client.send(kGet);
      (void)begun.recv();
      if (reset) (void)client.conn().set_linger_zero();
      client.conn().close();
      EXPECT_EQ(ended.recv()->code(), Errc::kClosed);
    }
  });
}

TEST_P(RequestContextTest, EndsWhileTheHandlerComputes) {
  run_with(GetParam(), [] {
    Chan<int> begun(1), seen(1);
    TestServer server([&](Request& req, ResponseWriter&) {
      const Context ctx = req.context();
      begun.send(1);
      while (!ctx.done()) {
      }
      seen.send(1);
    });
    RawClient client(server.address());
    client.send(kGet);
    (void)begun.recv();
    client.conn().close();
    EXPECT_TRUE(seen.recv());
  });
}

TEST_P(RequestContextTest, APipelinedRequestDoesNotEndIt) {
  run_with(GetParam(), [] {
    Chan<int> begun(1), go_on(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      const Context ctx = req.context();
      begun.send(1);
      (void)go_on.recv();
      res.text(ctx.done() ? "ended" : "alive");
    });
    RawClient client(server.address());
    client.send(kGet);
    (void)begun.recv();
    client.send(kGet);
    go_on.send(1);
    (void)begun.recv();
    go_on.send(1);
    const auto answers = client.read_responses(2);
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[0].body + " " + answers[1].body, "alive alive");
  });
}

TEST_P(RequestContextTest, EndsAtTheTimeoutAndAtTheReturnOfTheHandler) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.request_timeout = 20ms;
    Chan<Context> contexts(1);
    TestServer server(
        [&](Request& req, ResponseWriter& res) {
          if (req.path() == "/returns") {
            contexts.send(req.context());
            return;
          }
          req.context().wait();
          res.text(std::string(req.context().cause().timeout() ? "timeout" : "?"));
        },
        options);
    EXPECT_EQ(fetch(server.address(), get("/waits")).body, "timeout");
    RawClient client(server.address());
    client.send(get("/returns"));
    EXPECT_EQ(client.read_responses(1).size(), 1u);
    const Context returned = *contexts.recv();
    returned.wait();  // the connection goes on
    EXPECT_EQ(returned.cause().code(), Errc::kCancelled);
  });
}

TEST_P(RequestContextTest, EndsWhenShutdownCutsOff) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    Chan<Error> ended(1);
    ServerOptions options;
    options.shutdown_timeout = 10ms;
    TestServer server(waiter(begun, ended), options);
    RawClient client(server.address());
    client.send(kGet);
    (void)begun.recv();
    EXPECT_FALSE(server.server().shutdown("SIGTERM"));
    const Error cause = *ended.recv();
    EXPECT_EQ(cause.code(), Errc::kCancelled) << "unlike that of a client that has gone";
    EXPECT_EQ(cause.message(), "shutdown SIGTERM: context cancelled");
  });
}

TEST_P(RequestContextTest, ReadingABodyEndsWithAContextAndGoesOn) {
  run_with(GetParam(), [] {
    Chan<int> gave_up(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      const auto [ctx, cancel] = with_timeout(Context::background(), 10ms);
      const auto none = req.body(ctx);
      EXPECT_TRUE(!none && none.error().timeout());
      gave_up.send(1);
      res.text(req.body().value());
    });
    for (const bool chunked : {false, true}) {
      RawClient client(server.address());
      client.send(chunked ? "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe"
                          : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
      (void)gave_up.recv();
      client.send(chunked ? "\r\n3\r\nllo\r\n0\r\n\r\n" : "llo");
      EXPECT_EQ(client.read_responses(1).at(0).body, "hello");
    }
  });
}

TEST_P(RequestContextTest, WritingEndsWithAContext) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    const CancellableContext writing = with_cancel(Context::background());
    TestServer server([&](Request&, ResponseWriter& res) {
      const std::string piece(1 << 20, 'x');
      for (;;) {
        if (const auto written = res.write(writing.ctx(), piece); !written) {
          ended.send(written.error());
          return;
        }
      }
    });
    RawClient client(server.address());
    client.send(kGet);
    client.read_until([&client] { return client.received().size() > 1000; });
    writing.cancel();
    EXPECT_TRUE(ended.recv()->cancelled());
    client.read_until_closed();
    EXPECT_FALSE(parse_responses(client.received(), true).at(0).complete);
  });
}

}  // namespace
}  // namespace tuza::http::testing
