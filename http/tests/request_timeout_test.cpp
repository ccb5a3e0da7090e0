// Calls of a handler that wait without a Context: the time of the request limits them, by a fake clock over a network in memory.
#include <tuza/http/middleware/compress.h>
#include <tuza/http/middleware/timeout.h>
#include <tuza/http/multipart.h>
#include <tuza/http/router.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/time/fake_clock.h>

#include <array>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::FakeClock;
using tuza::testing::run_with;
using tuza::testing::TemporaryDirectory;
using tuza::testing::WithProcs;

class RequestTimeoutTest : public WithProcs {};
TUZA_WITH_PROCS(RequestTimeoutTest);

constexpr auto kPatient = std::chrono::hours(10'000);
constexpr std::size_t kMuch = 1 << 20;
const ServerOptions kTimes{.request_timeout = 15s, .body_timeout = 40s, .write_timeout = 30s};

std::string post_part(const std::string& path, const std::string& type) {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Type: " + type +
         "\r\nContent-Length: 1000\r\n\r\n--b";
}

// How long the server has waited for the rest of a body before it answered, and the answer.
std::pair<std::chrono::nanoseconds, std::string> waited_for_body(const Handler& handler,
                                                                 const ServerOptions& options,
                                                                 const std::string& head) {
  FakeClock clock;
  Server server([&](Request& req, ResponseWriter& res) { handler(req, res); }, {.server = options});
  RawClient raw(server.dial().value());
  raw.send(head);
  raw.read_until_closed(kPatient);
  return {clock.elapsed(), raw.received().substr(0, raw.received().find("\r\n"))};
}

Router body_readers() {
  Router router;
  router.handle("POST /plain", [](Request& req, ResponseWriter& res) {
    const auto body = req.body();
    if (body) return res.text(*body);
    EXPECT_TRUE(body.error().timeout());
  });
  router.handle("POST /pieces", [](Request& req, ResponseWriter&) {
    std::array<std::byte, 100> piece;
    while (req.read_body(piece).value_or(0) > 0) {
    }
  });
  router.handle("POST /form", [](Request& req, ResponseWriter&) { (void)req.form(); });
  router.handle("POST /parts", [](Request& req, ResponseWriter&) { (void)Multipart(req).next(); });
  router.handle("POST /asked", [](Request& req, ResponseWriter& res) {
    (void)req.context();
    if (const auto body = req.body()) res.text(*body);
  });
  router.handle("POST /longer", [](Request& req, ResponseWriter& res) {
    const auto body = req.body(Context::background());
    if (body) res.text(*body);
  });
  return router;
}

TEST_P(RequestTimeoutTest, ABodyIsWaitedForNoLongerThanTheRequestLasts) {
  run_with(GetParam(), [] {
    const Handler handler = body_readers();
    for (const auto& [path, type] : {std::pair{"/plain", "text/plain"},
                                     {"/pieces", "text/plain"},
                                     {"/form", "application/x-www-form-urlencoded"},
                                     {"/parts", "multipart/form-data; boundary=b"},
                                     {"/asked", "text/plain"}}) {
      const auto [waited, status] = waited_for_body(handler, kTimes, post_part(path, type));
      EXPECT_EQ(status, "HTTP/1.1 408 Request Timeout") << path;
      EXPECT_GE(waited, 15s) << path;
      EXPECT_LE(waited, 15s + 2s) << path << ", and the time in which the client may take the answer";
    }
    const auto [longer, status] = waited_for_body(handler, kTimes, post_part("/longer", "text/plain"));
    EXPECT_EQ(status, "HTTP/1.1 408 Request Timeout");
    EXPECT_GE(longer, 40s) << "a context of its own takes the place of the request's";
  });
}

TEST_P(RequestTimeoutTest, TheTimeOfTheMiddlewareCountsToo) {
  run_with(GetParam(), [] {
    const Handler handler = with(body_readers(), timeout(3s));
    const auto [waited, status] =
        waited_for_body(handler, {.body_timeout = 40s}, post_part("/plain", "text/plain"));
    EXPECT_EQ(status, "HTTP/1.1 408 Request Timeout");
    EXPECT_GE(waited, 3s);
    EXPECT_LE(waited, 5s);
  });
}

// The time until a write to a client that reads nothing has failed, and its error.
std::pair<std::chrono::nanoseconds, Error> waited_to_write(const Handler& handler,
                                                           const ServerOptions& options) {
  FakeClock clock;
  std::pair<std::chrono::nanoseconds, Error> result{0, Error(Errc::kOther, "no error")};
  Chan<int> ended(1);
  {
    Server server(
        [&](Request& req, ResponseWriter& res) {
          try {
            handler(req, res);
          } catch (const std::bad_expected_access<Error>& failed) {
            result = {clock.elapsed(), failed.error()};
          }
          ended.send(1);
        },
        {.server = options});
    RawClient raw(server.dial().value());
    raw.send(get("/"));
    (void)ended.recv();
  }
  return result;
}

TEST_P(RequestTimeoutTest, AClientIsWaitedForNoLongerThanTheRequestLasts) {
  run_with(GetParam(), [] {
    const auto much = [](Request&, ResponseWriter& res) { res.write(std::string(kMuch, 'x')).value(); };
    const Handler writes[] = {
        much,
        [](Request&, ResponseWriter& res) {
          for (;;) res.write("some").value();
        },
        [](Request&, ResponseWriter& res) {
          for (;;) {
            res.write(std::string(1000, 'x')).value();
            res.flush().value();
          }
        },
        [](Request& req, ResponseWriter& res) {
          (void)req.context();
          res.write(std::string(kMuch, 'x')).value();
        },
    };
    for (const Handler& write : writes) {
      const auto [waited, error] = waited_to_write(write, kTimes);
      EXPECT_EQ(waited, 15s);
      EXPECT_TRUE(error.timeout()) << error.message();
    }
    const auto longer = [](Request&, ResponseWriter& res) {
      res.write(Context::background(), std::string(kMuch, 'x')).value();
    };
    EXPECT_EQ(waited_to_write(longer, kTimes).first, 30s);
    EXPECT_EQ(waited_to_write(much, {.write_timeout = 30s}).first, 30s) << "without a request_timeout";
    EXPECT_EQ(waited_to_write(much, {.request_timeout = 100s, .write_timeout = 30s}).first, 30s);
    EXPECT_EQ(waited_to_write(with(much, timeout(3s)), {.write_timeout = 30s}).first, 3s);
  });
}

// The handler does not wait by itself.
TEST_P(RequestTimeoutTest, AWholeAnswerMayBeTakenLater) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Router router;
    router.handle("GET /late", [](Request& req, ResponseWriter& res) {
      req.context().wait();
      res.text(std::string(kMuch, 'x'));
    });
    router.handle("GET /next", [](Request&, ResponseWriter& res) { res.text("next"); });
    router.handle("GET /stream", [](Request& req, ResponseWriter& res) {
      Result<HijackedStream> stream = res.hijack(200);
      req.context().wait();
      EXPECT_TRUE(stream->write(std::string(kMuch, 'x')));
    });
    Server server(std::move(router), {.server = kTimes});
    RawClient raw(server.dial().value());
    raw.send(get("/late"));
    tuza::sleep_for(25s);
    EXPECT_EQ(raw.read_responses(1).at(0).body.size(), kMuch);
    raw.send(get("/next"));
    EXPECT_EQ(raw.read_responses(2).at(1).body, "next");
    RawClient second(server.dial().value());
    second.send(get("/stream"));
    tuza::sleep_for(25s);
    second.read_until_closed(kPatient);
    EXPECT_EQ(second.received().size(), kMuch);
  });
}

// Over real sockets: the client reads nothing of a file, or has ended its side of the stream and reads late.
TEST_P(RequestTimeoutTest, AFileIsCutOffAndAHalfClosedClientIsServed) {
  run_with(GetParam(), [] {
    const TemporaryDirectory folder;
    const std::string path = folder / "large";
    constexpr std::size_t kLarge = 32 << 20;
    EXPECT_TRUE(File::create(path).value().truncate(kLarge));
    std::chrono::nanoseconds took{};
    Chan<int> ended(1);
    const auto send = [&](Request& req, ResponseWriter& res) {
      (void)req.context();  // ends with the client's side
      const auto begun = Clock::now();
      res.send_file(path);
      took = Clock::now() - begun;
      ended.send(1);
    };
    {
      TestServer server(send, {.request_timeout = 100ms});
      RawClient client(server.address());
      client.send(get("/"));
      (void)ended.recv();
      EXPECT_LT(took, 20s) << "write_timeout is 30 s";
    }
    TestServer server(send, {.request_timeout = 20s});
    RawClient client(server.address());
    client.send(get("/"));
    EXPECT_TRUE(client.conn().close_write());
    tuza::sleep_for(20ms);
    client.read_until_closed();
    EXPECT_GT(client.received().size(), kLarge);
  });
}

}  // namespace
}  // namespace tuza::http::testing
