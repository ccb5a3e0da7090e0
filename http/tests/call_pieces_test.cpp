// Calls whose bodies arrive and leave in pieces, and clients that go away in the middle of them.
#include <tuza/http/middleware/timeout.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/sleep.h>
#include <tuza/sched/try.h>

#include <array>
#include <cstddef>
#include <span>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using Pieces = std::vector<std::string>;

// Gives one piece after the other, and then what is at the end.
std::function<Result<std::string>()> one_by_one(Pieces pieces, Result<std::string> end = "") {
  return [pieces = std::move(pieces), end = std::move(end), next = std::size_t{0}]() mutable {
    return next < pieces.size() ? Result<std::string>(pieces[next++]) : end;
  };
}

// Answers with what each read has got.
void reads(Request& req, ResponseWriter& res) {
  std::array<std::byte, 8> piece;
  std::string seen;
  for (;;) {
    const Result<std::size_t> n = req.read_body(piece);
    if (!n) {
      seen += n.error().message();
      break;
    }
    if (*n == 0) break;
    seen.append(reinterpret_cast<const char*>(piece.data()), *n).append("|");
  }
  res.text(seen);
}

TEST(CallPiecesTest, ABodyArrivesPieceByPiece) {
  EXPECT_EQ(call(reads, "POST /", {.next_piece = one_by_one({"one", "two and three", "4"})}).body,
            "one|two and |three|4|");
  EXPECT_EQ(call(reads, "POST /", {.body = "at once", .next_piece = one_by_one({"later"})}).body,
            "at once|later|");
  EXPECT_EQ(call(reads, "POST /", {.next_piece = one_by_one({})}).body, "");
  // With a length, what is beyond it is not the body's.
  EXPECT_EQ(call(reads, "POST /",
                 {.headers = {{"Content-Length", "5"}}, .next_piece = one_by_one({"one", "two", "never"})})
                .body,
            "one|tw|");
  EXPECT_EQ(
      call(reads, "POST /", {.headers = {{"Content-Length", "5"}}, .next_piece = one_by_one({"one"})}).body,
      "one|read body request body truncated: malformed message");
}

TEST(CallPiecesTest, TheLimitOfBodiesHoldsForPieces) {
  const auto whole = [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.text(*body);
  };
  const ServerOptions server{.body_bytes_max = 5};
  EXPECT_EQ(call(whole, "POST /", {.next_piece = one_by_one({"one", "tw"}), .server = server}).body, "onetw");
  EXPECT_EQ(call(whole, "POST /", {.next_piece = one_by_one({"one", "two"}), .server = server}).status, 413);
}

TEST(CallPiecesTest, ABodyMayArriveLater) {
  run_with(2, [] {
    const tuza::testing::FakeClock clock;
    const auto begun = tuza::now();
    const auto slow = [&, pieces = one_by_one({"a", "b"})]() {
      sleep_for(std::chrono::minutes(1));
      return pieces();
    };
    EXPECT_EQ(call(reads, "POST /", {.next_piece = slow}).body, "a|b|");
    EXPECT_EQ(tuza::now() - begun, std::chrono::minutes(3));
  });
}

TEST(CallPiecesTest, TheResponseIsDividedWhereItWasFlushed) {
  const auto flushes = [](Request&, ResponseWriter& res) {
    (void)res.flush();
    (void)res.write("one ");
    (void)res.write("and two");
    (void)res.flush();
    (void)res.flush();
    (void)res.write("three");
    (void)res.flush();
    (void)res.write("rest");
  };
  const CallResult res = call(flushes, "GET /");
  EXPECT_EQ(res.pieces, (Pieces{"one and two", "three", "rest"}));
  EXPECT_EQ(res.body, "one and twothreerest");
  EXPECT_EQ(call([](Request&, ResponseWriter& whole) { whole.text("whole"); }, "GET /").pieces,
            Pieces{"whole"});
  EXPECT_EQ(call([](Request&, ResponseWriter&) {}, "GET /").pieces, Pieces{});
}

TEST(CallPiecesTest, AClientGoesAwayInTheMiddleOfTheResponse) {
  int written = 0;
  std::string failure, cause;
  const auto endless = [&](Request& req, ResponseWriter& res) {
    const Context ctx = req.context();
    for (written = 0; written < 100; ++written) {
      Result<void> sent = res.write("ten bytes,");
      if (sent) sent = res.flush();
      if (sent) continue;
      failure = sent.error().message();
      break;
    }
    cause = ctx.done() ? ctx.cause().message() : "none";
  };
  const CallResult res = call(endless, "GET /", {.client_reads = 25});
  EXPECT_EQ(res.status, 200);
  EXPECT_EQ(res.body, "ten bytes,ten bytes,ten b");
  EXPECT_FALSE(res.complete);
  EXPECT_TRUE(res.closes);
  EXPECT_EQ(written, 2);
  EXPECT_EQ(failure, Error(Errc::kClosed, "write").message());
  EXPECT_EQ(cause, Error(Errc::kClosed, "peer").message());
  // A response that is held back is cut off as well.
  const CallResult whole =
      call([](Request&, ResponseWriter& out) { out.text("whole"); }, "GET /", {.client_reads = 3});
  EXPECT_EQ(whole.body, "who");
  EXPECT_FALSE(whole.complete);
  EXPECT_TRUE(
      call([](Request&, ResponseWriter& out) { out.text("whole"); }, "GET /", {.client_reads = 5}).complete);
}

TEST(CallPiecesTest, AClientMayHaveGoneBeforeTheHandlerRuns) {
  std::string seen;
  const auto handler = [&](Request& req, ResponseWriter& res) {
    seen = req.context().cause().message() + ", " + res.write("x").error().message() + ", " +
           req.body().error().message();
  };
  const CallResult res = call(handler, "POST /", {.next_piece = one_by_one({"never"}), .client_reads = 0});
  EXPECT_EQ(seen, Error(Errc::kClosed, "peer").message() + ", " + Error(Errc::kClosed, "write").message() +
                      ", read body request body truncated: malformed message");
  EXPECT_EQ(res.status, 0);
  EXPECT_TRUE(res.headers.empty() && res.body.empty());
  EXPECT_FALSE(res.complete);
}

TEST(CallPiecesTest, AClientGoesAwayInTheMiddleOfItsBody) {
  std::string cause;
  const auto handler = [&](Request& req, ResponseWriter& res) -> Result<void> {
    const Context ctx = req.context();
    const Result<std::string_view> body = req.body();
    cause = ctx.done() ? ctx.cause().message() : "none";
    TUZA_TRY(body);
    res.text(*body);
    return {};
  };
  const CallResult res = call(
      handler, "POST /", {.next_piece = one_by_one({"half"}, std::unexpected(Error(Errc::kClosed, "read")))});
  EXPECT_EQ(cause, Error(Errc::kClosed, "peer").message());
  EXPECT_EQ(res.status, 0) << "nobody hears the 400";
}

TEST(CallPiecesTest, GoexitEndsTheHandlerAndNotTheTest) {
  run_with(2, [] {
    bool destroyed = false;
    const auto handler = [&](Request&, ResponseWriter&) {
      struct Guard {
        bool& flag;
        ~Guard() { flag = true; }
      } const guard{destroyed};
      goexit();
    };
    const CallResult res = call(handler, "GET /");
    EXPECT_TRUE(destroyed);
    EXPECT_EQ(res.status, 0);
    EXPECT_FALSE(res.complete);
    EXPECT_EQ(res.exception, nullptr);
  });
}

}  // namespace
}  // namespace tuza::http::testing
