// A handler's goroutine that keeps Request or ResponseWriter beyond the handler is named by AddressSanitizer.
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>

#include <string>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

// Calls `use` when the handler has returned, and the client has its answer.
template <class Use>
void use_too_late(Use use, bool over_socket) {
  run_with(2, [&] {
    Chan<int> answered(0);
    WaitGroup late;
    Router router;
    router.handle("/", [&](Request& req, ResponseWriter& res) {
      late.go([&] {
        (void)answered.recv();
        use(req, res);
      });
      res.text("in time");
    });
    if (over_socket) {
      TestServer server(std::move(router));
      RawClient client(server.address());
      client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
      client.read_until([&] { return client.received().ends_with("in time"); });
      answered.close();
      late.wait();
    } else {
      (void)call(router, "GET /");
      answered.close();
      late.wait();
    }
  });
}

TEST(KeptRequestDeathTest, IsNamedByAddressSanitizer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool over_socket : {false, true}) {
    EXPECT_DEATH(use_too_late([](Request& req, ResponseWriter&) { (void)req.method(); }, over_socket),
                 "heap-use-after-free(.|\n)*Request::method(.|\n)*freed by(.|\n)*Exchange::run");
    EXPECT_DEATH(use_too_late([](Request&, ResponseWriter& res) { res.text("late"); }, over_socket),
                 "heap-use-after-free(.|\n)*ResponseWriter(.|\n)*freed by(.|\n)*Exchange::run");
  }
}

}  // namespace
}  // namespace tuza::http::testing
