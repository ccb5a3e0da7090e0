// Servers that answer while the request's body is still on its way, as Node does that pipes one into the other.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/status_error.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

using tuza::testing::FakeClock;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientEarlyAnswerTest : public WithProcs {};
TUZA_WITH_PROCS(ClientEarlyAnswerTest);

constexpr std::size_t kLong = 4 << 20;  // more than both directions hold

ServerSetup setup() {
  return {.server = {.body_bytes_max = kLong, .body_timeout = 10s}, .client = {.stall_timeout = 20s}};
}

// Each piece as it arrives. The first leaves before the second is read.
void send_back(Request& req, ResponseWriter& res) {
  std::array<std::byte, 16 << 10> piece;
  for (;;) {
    const Result<std::size_t> n = req.read_body(piece);
    if (!n) throw StatusError(400);  // breaks the answer off
    if (*n == 0 || !res.write(std::string_view(reinterpret_cast<const char*>(piece.data()), *n)) ||
        !res.flush())
      return;
  }
}

std::string long_text() {
  std::string text(kLong, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

ClientRequest from_source(const std::string& target, std::string_view text, std::size_t& sent) {
  ClientRequest request(Method::kPost, target);
  request.set_body_source(
      [text, &sent](std::span<std::byte> into) -> Result<std::size_t> {
        const std::size_t n = std::min(into.size(), text.size() - sent);
        std::ranges::copy(std::as_bytes(std::span(text)).subspan(sent, n), into.begin());
        sent += n;
        return n;
      },
      text.size());
  return request;
}

TEST_P(ClientEarlyAnswerTest, TheRestOfATextFollowsWithoutTheRequest) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Server server(send_back, setup());
    const std::string text = long_text();
    Result<ClientResponse> answer = server.client().post(Context(), server.url(), "text/plain", text);
    EXPECT_TRUE(answer->body() == text);
    // A response that nobody reads ends the sending, too.
    EXPECT_EQ(server.client().post(Context(), server.url(), "text/plain", text)->status(), 200);
    EXPECT_EQ(server.close(), "");
  });
}

TEST_P(ClientEarlyAnswerTest, ARefusalEndsTheText) {
  run_with(GetParam(), [] {
    FakeClock clock;
    std::size_t received = 0;
    const auto refuse = [&received](Request& req, ResponseWriter& res) {
      res.status(403);
      if (!res.write("no") || !res.flush()) return;
      sleep_for(1s);  // until all others wait
      std::array<std::byte, 16 << 10> piece;
      for (auto n = req.read_body(piece); n && *n > 0; n = req.read_body(piece)) received += *n;
    };
    Server server(refuse, setup());
    Result<ClientResponse> answer = server.client().post(Context(), server.url(), "text/plain", long_text());
    EXPECT_EQ(answer->status(), 403);
    EXPECT_FALSE(answer->body()) << "the handler has waited for the rest until body_timeout";
    EXPECT_LT(received, kLong);
    EXPECT_EQ(server.close(), "");
  });
}

TEST(ClientEarlyAnswerDeathTest, ARequestMustOutliveTheResponseThatItIsSentBeside) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends_too_early = [] {
    ScriptedServer server([](net::Conn& conn, int) {
      ScriptedServer::read_request(conn);
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
      wait_for_end(conn);
    });
    Client client;
    const auto endless = [](std::span<std::byte> into) -> Result<std::size_t> { return into.size(); };
    const Result<ClientResponse> res = client.send(
        kNoContext, ClientRequest(Method::kPost, server.url()).set_body_source(endless).keep_sending());
    (void)res;
  };
  EXPECT_DEATH(run(ends_too_early), "ends while its body is being sent beside the response");
}

TEST_P(ClientEarlyAnswerTest, ASourceEndsUnlessItIsToGoOn) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Server server(send_back, setup());
    const std::string text = long_text();
    std::size_t sent = 0;
    ClientRequest ended = from_source(server.url(), text, sent);
    const Result<std::string> cut_off = server.client().send(Context(), ended)->body();
    EXPECT_NE(cut_off.error().message().find("keep_sending()"), std::string_view::npos)
        << cut_off.error().message();
    EXPECT_LT(sent, kLong);

    ClientRequest kept = from_source(server.url(), text, sent = 0);
    kept.keep_sending();
    EXPECT_TRUE(server.client().send(Context(), kept)->body() == text);
    EXPECT_EQ(server.close(), "");
  });
}

}  // namespace
}  // namespace tuza::http::testing
