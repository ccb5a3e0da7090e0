// Contexts that end at any moment while a body is read, a response is written, or a file is sent, again and again: the call
// returns the cause, and no goroutine, descriptor or memory is left (AddressSanitizer's build looks at the memory).
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/chan.h>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

constexpr int kRounds = 10'500;          // in memory, with all numbers of processors together
constexpr int kRoundsOnSockets = 100;    // whose buffers have to be filled before a call waits
constexpr std::size_t kHuge = 64 << 20;  // more than the buffers of a connection take

const char* const kCause = "given up";

using Call = std::function<Error(const Context&, Request&, ResponseWriter&)>;

class ContextRoundsTest : public WithProcs {};
TUZA_WITH_PROCS(ContextRoundsTest);

// Each round is a connection whose client neither sends nor reads more; `call` waits for it until its context ends.
void go_rounds(int rounds, bool socket, const std::string& request, const Call& call) {
  std::atomic<int> round = 0;  // a socket orders nothing for ThreadSanitizer
  int wrong = 0;
  Chan<int> over(1);
  Server server(
      [&](Request& req, ResponseWriter& res) {
        auto [ctx, cancel] = with_cancel(req.context());
        WaitGroup canceller;
        canceller.go([&, cancel = std::move(cancel)] {
          for (int i = 0; i < round % 8; ++i) yield();
          cancel(Error(Errc::kOther, kCause));
        });
        const Error error = call(ctx, req, res);
        if (error.op() != kCause) ++wrong;
        canceller.wait();
        over.send(1);
      },
      {.socket = socket, .buffer_bytes = 4096});
  for (round = 0; round < rounds; ++round) {
    net::Conn client = server.dial().value();
    ASSERT_TRUE(client.set_linger_zero());
    ASSERT_TRUE(client.write_all(request));
    (void)over.recv();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server.close(), "");
}

void go_rounds(int procs, const std::string& request, const Call& call) {
  run_with(procs, [&] {
    const int runs = static_cast<int>(tuza::testing::proc_counts({1, 2, 4}).size());
    go_rounds(kRounds / runs, false, request, call);
    go_rounds(kRoundsOnSockets, true, request, call);
  });
}

TEST_P(ContextRoundsTest, ReadingABody) {
  go_rounds(GetParam(), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhal",
            [](const Context& ctx, Request& req, ResponseWriter&) { return req.body(ctx).error(); });
}

TEST_P(ContextRoundsTest, WritingAResponse) {
  const std::string piece(1 << 20, 'x');
  go_rounds(GetParam(), get("/"), [&](const Context& ctx, Request&, ResponseWriter& res) {
    for (;;) {
      if (const Result<void> sent = res.write(ctx, piece); !sent) return sent.error();
    }
  });
}

TEST_P(ContextRoundsTest, SendingAFile) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  const int fd = fileno(file.get());
  ASSERT_EQ(ftruncate(fd, kHuge), 0);
  go_rounds(GetParam(), get("/"), [&](const Context& ctx, Request&, ResponseWriter& res) {
    res.set_header("Content-Length", std::to_string(kHuge));
    return res.write_file(ctx, {fd, 0, kHuge}).error();
  });
}

}  // namespace
}  // namespace tuza::http::testing
