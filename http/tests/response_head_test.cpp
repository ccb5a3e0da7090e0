// Heads of responses: what they mean, and what is refused, however their bytes arrive.
#include <gtest/gtest.h>
#include <tuza/http/tests/at_page_end.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/head_parser.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

std::string body_of(const ResponseHead& head) {
  if (head.chunked) return "chunked";
  return head.until_close ? "until close" : std::to_string(head.content_length);
}

// A head that arrives in pieces that end at `splits`, in one line that can be compared.
std::string means(std::string_view bytes, const std::vector<std::size_t>& splits, Method asked,
                  const HeadLimits& limits = {}) {
  const auto head = std::make_unique<ResponseHead>();
  HeadParser parser;
  parser.begin(*head, limits);
  const AtPageEnd copy(bytes);
  std::size_t fed = 0;
  for (std::size_t i = 0; i <= splits.size(); ++i) {
    const std::size_t end = i < splits.size() ? splits[i] : bytes.size();
    const auto complete = parser.feed_head(copy.begin(), end - fed);
    fed = end;
    if (!complete) return "refused: " + std::string(complete.error().text);
    if (!*complete) continue;
    const auto framed = frame_response(copy.begin(), *head, asked);
    if (!framed) return "refused: " + std::string(framed.error().text);
    return "1." + std::to_string(head->version_minor) + " " + std::to_string(head->status) + " [" +
           std::string(head->reason.in(copy.begin())) + "] " + body_of(*head) +
           (head->keep_alive ? " keep " : " close ") + std::to_string(head->fields.size()) + " fields " +
           std::to_string(head->bytes);
  }
  return "incomplete";
}

struct ResponseCase {
  std::string_view head;
  std::string_view expected;  // begins so
  Method asked = Method::kGet;
};

class ResponseHeadTest : public ::testing::TestWithParam<ResponseCase> {};

TEST_P(ResponseHeadTest, MeansTheSameHoweverItArrives) {
  const auto& [head, expected, asked] = GetParam();
  const std::string whole = means(head, {}, asked);
  EXPECT_EQ(whole.substr(0, expected.size()), expected) << whole;
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < head.size(); ++i) {
    EXPECT_EQ(means(head, {i}, asked), whole) << "split at " << i;
    every.push_back(i);
  }
  EXPECT_EQ(means(head, every, asked), whole) << "byte by byte";
}

using namespace std::string_view_literals;

INSTANTIATE_TEST_SUITE_P(
    Bodies, ResponseHeadTest,
    ::testing::Values(
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "1.1 200 [OK] 5 keep 1 fields 38"},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1.1 200 [OK] chunked keep"},
        ResponseCase{"HTTP/1.1 200 OK\r\n\r\n", "1.1 200 [OK] until close close"},
        ResponseCase{"HTTP/1.0 200 OK\r\n\r\n", "1.0 200 [OK] until close close"},
        ResponseCase{"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", "1.0 200 [OK] until close close"},
        ResponseCase{"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
                     "1.0 200 [OK] 0 keep"},
        ResponseCase{"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "1.0 200 [OK] 0 close"},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, close\r\n\r\n",
                     "1.1 200 [OK] 1 close"},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length:\t7\t \r\n\r\n", "1.1 200 [OK] 7 keep"},
        // No body, whatever the fields say.
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "1.1 200 [OK] 0 keep", Method::kHead},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1.1 200 [OK] 0 keep",
                     Method::kHead},
        ResponseCase{"HTTP/1.1 200 OK\r\n\r\n", "1.1 200 [OK] 0 keep", Method::kHead},
        ResponseCase{"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
                     "1.1 304 [Not Modified] 0 keep"},
        ResponseCase{"HTTP/1.1 204 No Content\r\n\r\n", "1.1 204 [No Content] 0 keep"},
        ResponseCase{"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "1.1 204 [No Content] 0 keep"},
        ResponseCase{"HTTP/1.1 100 Continue\r\n\r\n", "1.1 100 [Continue] 0 keep"},
        ResponseCase{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                     "1.1 103 [Early Hints] 0 keep 1 fields"},
        ResponseCase{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                     "1.1 101 [Switching Protocols] 0 keep"},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "1.1 200 [OK] 0 keep", Method::kConnect},
        ResponseCase{"HTTP/1.1 407 No\r\nContent-Length: 5\r\n\r\n", "1.1 407 [No] 5 keep",
                     Method::kConnect}));

INSTANTIATE_TEST_SUITE_P(
    StatusLines, ResponseHeadTest,
    ::testing::Values(
        ResponseCase{"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "1.1 200 [] 0"},
        ResponseCase{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "1.1 200 [] 0"},
        ResponseCase{"HTTP/1.1 999 \tWhy  not?\xff\r\nContent-Length: 0\r\n\r\n",
                     "1.1 999 [\tWhy  not?\xff] 0"},
        ResponseCase{"\r\nHTTP/1.1 200 OK\r\n\r\n", "refused: "},
        ResponseCase{" HTTP/1.1 200 OK\r\n\r\n", "refused: "}, ResponseCase{"hello\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 20 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 2000 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 099 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 +20 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 2x0 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1  200 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1\t200 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 a\x01"
                     "b\r\n\r\n",
                     "refused: "},
        ResponseCase{"HTTP/1.1 200 a\0b\r\n\r\n"sv, "refused: "},
        ResponseCase{"HTTP/1.1 200 a\rb\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\n\n", "refused: "},
        ResponseCase{"HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", "1.1 200 [OK] 0"},
        ResponseCase{"HTTP/1.9 200 HTTP/1.2\r\nContent-Length: 0\r\n\r\n", "1.1 200 [HTTP/1.2] 0"},
        ResponseCase{"HTTP/1.22 200 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1. 200 OK\r\n\r\n", "refused: malformed status line"},
        ResponseCase{"HTTP/1.2\t200 OK\r\n\r\n", "refused: malformed status line"},
        ResponseCase{"HTTP/ HTTP/1.2 200 OK\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/2.0 200 OK\r\n\r\n", "refused: HTTP version not supported"},
        ResponseCase{"HTTP/0.9 200 OK\r\n\r\n", "refused: HTTP version not supported"},
        ResponseCase{"HTTP/11 200 OK\r\n\r\n", "refused: "},
        ResponseCase{"http/1.1 200 OK\r\n\r\n", "refused: "},
        ResponseCase{"RTSP/1.0 200 OK\r\n\r\n", "refused: "}, ResponseCase{"ICY 200 OK\r\n\r\n", "refused: "},
        ResponseCase{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA: b\r\n", "incomplete"}));

// What two parties may understand differently.
INSTANTIATE_TEST_SUITE_P(
    Smuggling, ResponseHeadTest,
    ::testing::Values(
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                     "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                     "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 1 2\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                     "refused: transfer coding not implemented"},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                     "refused: "},
        ResponseCase{"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\n Content-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA: b\r\n\tContent-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA: b\rContent-Length: 5\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"sv, "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\n: b\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nA(b): c\r\n\r\n", "refused: "},
        ResponseCase{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\n", "refused: "}));

TEST(ResponseHeads, HaveLimits) {
  constexpr HeadLimits kSmall{.start_line_bytes = 10, .head_bytes = 100, .fields = 2};
  const auto of = [&](const std::string& head) {
    const std::string whole = means(head, {}, Method::kGet, kSmall);
    std::vector<std::size_t> every;
    for (std::size_t i = 1; i < head.size(); ++i) every.push_back(i);
    EXPECT_EQ(means(head, every, Method::kGet, kSmall), whole) << head;
    return whole;
  };
  EXPECT_EQ(of("HTTP/1.1 200 0123456789\r\n\r\n").substr(0, 20), "1.1 200 [0123456789]");
  EXPECT_EQ(of("HTTP/1.1 200 0123456789a\r\n\r\n"), "refused: status line too long");
  EXPECT_EQ(of("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n").substr(0, 12), "1.1 200 [OK]");
  EXPECT_EQ(of("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"), "refused: too many header fields");
  EXPECT_EQ(of("HTTP/1.1 200 OK\r\nA: " + std::string(200, 'a') + "\r\n\r\n"),
            "refused: header fields too large");
}

// A parser is used for one message after the other, in either direction.
TEST(HeadParser, ChangesItsDirection) {
  std::string request = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
              response = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
  const auto asked = std::make_unique<RequestHead>();
  const auto answered = std::make_unique<ResponseHead>();
  const HeadLimits limits;
  HeadParser parser;
  for (int i = 0; i < 2; ++i) {
    parser.begin(*asked, limits);
    ASSERT_EQ(parser.feed_head(request.data(), request.size()), true);
    ASSERT_TRUE(frame_request(request.data(), *asked).has_value());
    EXPECT_EQ(asked->target.in(request.data()), "/a");
    parser.begin(*answered, limits);
    ASSERT_EQ(parser.feed_head(response.data(), response.size()), true);
    ASSERT_TRUE(frame_response(response.data(), *answered, asked->method).has_value());
    EXPECT_EQ(answered->status, 404);
  }
}

}  // namespace
}  // namespace tuza::http::testing
