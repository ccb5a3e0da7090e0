// Parser, framing and buffers: every split of every request, against a guard page.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <tuza/http/tests/request_cases.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/date.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/http/wire/input.h>
#include <tuza/sched/rt/base/random.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <memory>
#include <string>

namespace tuza::http::testing {
namespace {

// A copy of some bytes that ends where readable memory ends: reading one byte too many faults.
class AtPageEnd {
 public:
  explicit AtPageEnd(std::string_view bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t used = (bytes.size() + page - 1) / page * page;
    size_ = used + page;
    map_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_ + used, page, PROT_NONE);
    begin_ = map_ + used - bytes.size();
    std::memcpy(begin_, bytes.data(), bytes.size());
  }
  ~AtPageEnd() { munmap(map_, size_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  [[nodiscard]] char* begin() const { return begin_; }

 private:
  char* map_;
  char* begin_;
  std::size_t size_;
};

// The result of parsing and framing a head, in one line that can be compared.
std::string describe(std::string_view bytes, const std::vector<std::size_t>& splits) {
  const ServerOptions options;
  auto head = std::make_unique<Head>();
  HeadParser parser;
  parser.begin(*head, options);
  const AtPageEnd copy(bytes);
  std::size_t fed = 0;
  for (std::size_t i = 0; i <= splits.size(); ++i) {
    const std::size_t end = i < splits.size() ? splits[i] : bytes.size();
    const auto complete = parser.feed_head(copy.begin(), end - fed);
    fed = end;
    if (!complete) return std::to_string(complete.error().status) + " " + std::string(complete.error().text);
    if (!*complete) continue;
    const auto framed = frame(copy.begin(), *head);
    if (!framed) return std::to_string(framed.error().status) + " " + std::string(framed.error().text);
    std::string text = std::string(name(head->method)) + "|" + std::string(head->path.in(copy.begin())) +
                       "|" + std::string(head->query.in(copy.begin())) + "|" +
                       std::string(head->host.in(copy.begin())) + "|" + std::to_string(head->content_length) +
                       (head->chunked ? " chunked" : "") + (head->keep_alive ? " keep" : " close") + " " +
                       std::to_string(head->bytes);
    for (std::uint32_t f = 0; f < head->field_count; ++f) {
      text += "|" + std::string(head->fields[f].name.in(copy.begin())) + "=" +
              std::string(head->fields[f].value.in(copy.begin()));
    }
    return text;
  }
  return "incomplete";
}

TEST(HeadParser, MeansTheSameHoweverTheBytesArrive) {
  int compared = 0;
  for (const RequestCase& c : load_request_cases()) {
    const std::string_view head = std::string_view(c.bytes).substr(0, 4000);
    const std::string whole = describe(head, {});
    std::vector<std::size_t> every;
    for (std::size_t i = 1; i < head.size(); ++i) every.push_back(i);
    ASSERT_EQ(describe(head, every), whole) << c.name << ", byte by byte";
    if (head.size() > 600) continue;
    for (std::size_t i = 1; i < head.size(); ++i) {
      ASSERT_EQ(describe(head, {i}), whole) << c.name << ", split at " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 5000);
}

std::string in_chunks(std::string_view body, std::size_t step, std::string& decoded) {
  const ServerOptions options;
  auto head = std::make_unique<Head>();
  HeadParser parser;
  parser.begin(*head, options);
  std::string start = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_TRUE(*parser.feed_head(start.data(), start.size()));
  std::size_t at = 0;
  while (at < body.size()) {
    const AtPageEnd piece(body.substr(at, step));
    std::string_view left(piece.begin(), std::min(step, body.size() - at));
    while (!left.empty()) {
      const auto did = parser.feed_body(left);
      if (!did) return "refused";
      decoded += did->data;
      left.remove_prefix(did->consumed);
      at += did->consumed;
      if (did->complete) return "complete at " + std::to_string(at);
    }
  }
  return "more";
}

TEST(HeadParser, DecodesChunksHoweverTheyArrive) {
  for (const char* body : {"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\nGET",
                           "5;a=b;c=\"d\"\r\nhello\r\n6\r\n world\r\n000\r\nX: y\r\n\r\nrest",
                           "5\r\nhelloX\r\n", "g\r\n", "5\nhello\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n"}) {
    std::string whole, decoded;
    const std::string verdict = in_chunks(body, 1000, whole);
    for (std::size_t step = 1; step < 20; ++step) {
      decoded.clear();
      EXPECT_EQ(in_chunks(body, step, decoded), verdict) << body << " in pieces of " << step;
      if (verdict != "refused") {
        EXPECT_EQ(decoded, whole) << body << " in pieces of " << step;
      }
    }
  }
}

// -- Framing: how a head delimits its body.

struct FramingCase {
  const char* head;
  const char* expected;  // the text of describe(), without the fields
};

class FramingTest : public ::testing::TestWithParam<FramingCase> {};

TEST_P(FramingTest, Means) {
  const std::string described = describe(GetParam().head, {});
  EXPECT_EQ(described.substr(0, std::string(GetParam().expected).size()), GetParam().expected) << described;
}

INSTANTIATE_TEST_SUITE_P(
    Targets, FramingTest,
    ::testing::Values(
        FramingCase{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/||h|0 keep"},
        FramingCase{"GET /a/b?c=d?e HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/a/b|c=d?e|h|0 keep"},
        FramingCase{"GET /? HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/||h|0 keep"},
        FramingCase{"GET http://x.org HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/||x.org|0 keep"},
        FramingCase{"GET HTTP://x.org:80?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/|q|x.org:80|0 keep"},
        FramingCase{"GET https://x.org/p?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/p|q|x.org|0 keep"},
        FramingCase{"GET http:///p HTTP/1.1\r\nHost: h\r\n\r\n", "400 "},
        FramingCase{"GET ftp://x/ HTTP/1.1\r\nHost: h\r\n\r\n", "400 "},
        FramingCase{"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS|*||h|0 keep"},
        FramingCase{"GET * HTTP/1.1\r\nHost: h\r\n\r\n", "400 "},
        FramingCase{"GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", "400 "},
        FramingCase{"GET /%41%zz HTTP/1.1\r\nHost: h\r\n\r\n", "400 "}));

INSTANTIATE_TEST_SUITE_P(
    Connections, FramingTest,
    ::testing::Values(
        FramingCase{"GET / HTTP/1.0\r\n\r\n", "GET|/|||0 close"},
        FramingCase{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET|/|||0 keep"},
        FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nConnection: a ,close, b\r\n\r\n", "GET|/||h|0 close"},
        FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", "GET|/||h|0 keep"}));

INSTANTIATE_TEST_SUITE_P(
    Hosts, FramingTest,
    ::testing::Values(FramingCase{"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET|/||[::1]:80|0"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a_b-c.d%20e:\r\n\r\n", "GET|/||a_b-c.d%20e:|0"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\n\r\n", "400 missing Host"},
                      FramingCase{"GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n", "400 more than one Host"}));

INSTANTIATE_TEST_SUITE_P(
    Bodies, FramingTest,
    ::testing::Values(
        FramingCase{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n", "POST|/||h|7 keep"},
        FramingCase{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \t 7\t\r\n\r\n", "POST|/||h|7 keep"},
        FramingCase{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n",
                    "POST|/||h|0 chunked keep"},
        FramingCase{"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "400 "},
        FramingCase{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", "400 "},
        FramingCase{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4611686018427387905\r\n\r\n", "400 "},
        FramingCase{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", "400 "}));

// -- The input buffer.

TEST(Input, KeepsWhatIsUnreadAndWhatIsPinned) {
  rt::Random random(3);
  // The source of the sent bytes: made once, as sanitizers are slow with single bytes.
  std::string bytes(64 << 10, '\0');
  for (char& c : bytes) c = static_cast<char>(random.next());
  for (int round = 0; round < 300; ++round) {
    Input input;
    std::string sent;
    std::size_t taken = 0;
    const auto fill = [&](std::size_t n) {
      const auto space = input.space();
      ASSERT_FALSE(space.empty());
      n = std::min(n, space.size());
      const char* from = bytes.data() + random.below(static_cast<std::uint32_t>(bytes.size() - n + 1));
      std::memcpy(space.data(), from, n);
      sent.append(from, n);
      input.filled(n);
    };
    const auto take = [&](std::size_t n) {
      n = std::min(n, input.unread().size());
      ASSERT_EQ(input.unread().substr(0, n), std::string_view(sent).substr(taken, n));
      input.consume(n);
      taken += n;
    };
    // A head of some size, pinned; a body read in pieces behind it; then the next request.
    const std::size_t begin = taken;
    const std::size_t head = 1 + random.below(12'000);
    while (sent.size() < head) fill(head - sent.size());
    take(head);
    ASSERT_EQ(std::string_view(input.request(), head), std::string_view(sent).substr(begin, head));
    input.pin();
    const std::string_view pinned(input.request(), head);
    const std::string expected(pinned);
    for (int i = 0; i < 50; ++i) {
      fill(1 + random.below(6000));
      take(random.below(6000));
      ASSERT_EQ(pinned, expected);
    }
    input.end_request();
    ASSERT_EQ(input.unread(), std::string_view(sent).substr(taken));
  }
}

// -- Small units.

TEST(Date, FollowsTheWallClock) {
  Date date;
  const std::string line(date.line(1));
  std::tm t{};
  ASSERT_NE(strptime(line.c_str(), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &t), nullptr) << line;
  EXPECT_NEAR(static_cast<double>(timegm(&t)), static_cast<double>(std::time(nullptr)), 2.0);
  EXPECT_EQ(date.line(1), line) << "the same second, the same text";
}

TEST(Chars, CompareWithoutCaseOnlyLetters) {
  EXPECT_TRUE(equals_ignoring_case("Content-LENGTH", "content-length"));
  EXPECT_FALSE(equals_ignoring_case("a[", "A{"));
  EXPECT_FALSE(equals_ignoring_case("a", "ab"));
  EXPECT_EQ(trim(" \t a b\t "), "a b");
  EXPECT_EQ(trim(" \t "), "");
}

}  // namespace
}  // namespace tuza::http::testing
