// Parser, framing and buffers: every split of every request, against a guard page.
#include <gtest/gtest.h>
#include <tuza/http/files/ranges.h>
#include <tuza/http/serve/refusal.h>
#include <tuza/http/tests/at_page_end.h>
#include <tuza/http/tests/request_cases.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/date.h>
#include <tuza/http/wire/digest.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/http/wire/input.h>
#include <tuza/sched/rt/base/random.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

std::string describe(const ParseError& error) {
  return std::to_string(status_of(error.code)) + " " + std::string(error.text);
}

// The result of parsing and framing a head, in one line that can be compared.
std::string describe(std::string_view bytes, const std::vector<std::size_t>& splits) {
  const HeadLimits limits;
  auto head = std::make_unique<RequestHead>();
  HeadParser parser;
  parser.begin(*head, limits);
  const AtPageEnd copy(bytes);
  std::size_t fed = 0;
  for (std::size_t i = 0; i <= splits.size(); ++i) {
    const std::size_t end = i < splits.size() ? splits[i] : bytes.size();
    const auto complete = parser.feed_head(copy.begin(), end - fed);
    fed = end;
    if (!complete) return describe(complete.error());
    if (!*complete) continue;
    const auto framed = frame_request(copy.begin(), *head);
    if (!framed) return describe(framed.error());
    std::string text = std::string(name(head->method)) + "|" + std::string(head->path.in(copy.begin())) +
                       "|" + std::string(head->query.in(copy.begin())) + "|" +
                       std::string(head->host.in(copy.begin())) + "|" + std::to_string(head->content_length) +
                       (head->chunked ? " chunked" : "") + (head->keep_alive ? " keep" : " close") + " " +
                       std::to_string(head->bytes);
    for (const auto& [name, value] : head->fields) {
      text += "|" + std::string(name.in(copy.begin())) + "=" + std::string(value.in(copy.begin()));
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

// -- Ranges: sums of large numbers.

TEST(Ranges, ThatExceedAHugeFileTogetherAreIgnored) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;  // 16 of them are more than 64 bits hold
  std::string all = "bytes=0-";
  for (int i = 1; i < 16; ++i) all += ",0-";
  EXPECT_EQ(parse_range(all, kHuge).kind, RangeRequest::Kind::kWhole);
  EXPECT_EQ(parse_range("bytes=0-9,10-", kHuge).kind, RangeRequest::Kind::kParts);
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
        FramingCase{"GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/a%2||h|0 keep"},
        FramingCase{"GET /%41%zz HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/%41%zz||h|0 keep"},
        FramingCase{"GET http://x.org/^%?{^`\\}% HTTP/1.1\r\nHost: h\r\n\r\n",
                    "GET|/^%|{^`\\}%|x.org|0 keep"},
        FramingCase{"GET http://x.org?{} HTTP/1.1\r\nHost: h\r\n\r\n", "GET|/|{}|x.org|0 keep"},
        FramingCase{"GET http://x%.org/ HTTP/1.1\r\nHost: h\r\n\r\n", "400 "},
        FramingCase{"GET http://x\xc3\xa9.org/ HTTP/1.1\r\nHost: h\r\n\r\n", "400 "}));

// WHATWG URL: what browsers send as it is. RFC 3986 has neither of these characters, nor a "%" that begins no escape.
TEST(Targets, MayHaveWhatBrowsersDoNotEscape) {
  const std::string anywhere = "!$%&'()*+,-.0A:;=@[]^_a|~\x80\xa0\xff", in_query = "`{}\\?/";
  for (int i = 1; i < 256; ++i) {
    const auto c = static_cast<char>(i);
    const bool alnum = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
    const bool free = alnum || i >= 0x80 || anywhere.contains(c);
    for (const bool query : {false, true}) {
      if (!query && c == '?') continue;
      const bool accepted = free || c == '/' || (query && in_query.contains(c));
      const std::string target = std::string(query ? "/p?q=" : "/p") + c + "z";
      const std::string described = describe("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n", {});
      const std::string expected =
          query ? "GET|/p|q=" + std::string(1, c) + "z|h|" : "GET|/p" + std::string(1, c) + "z||h|";
      EXPECT_EQ(described.starts_with(expected), accepted)
          << i << (query ? " in a query: " : ": ") << described;
      if (accepted) continue;
      EXPECT_EQ(described.substr(0, 4), "400 ") << i << (query ? " in a query" : "");
    }
  }
}

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
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n",
                                  "GET|/||[fe80::1%25eth0]|0"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%25en-_.~1%41]:8080\r\n\r\n",
                                  "GET|/||[fe80::1%25en-_.~1%41]:8080|0"},
                      FramingCase{"GET http://[fe80::1%25eth0]:80/p HTTP/1.1\r\nHost: h\r\n\r\n",
                                  "GET|/p||[fe80::1%25eth0]:80|0"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%eth0]\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%25]\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%25a/b]\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%25a%2]\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [fe80::1%25a,b]\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [%25eth0]\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "400 malformed Host"},
                      FramingCase{"GET / HTTP/1.1\r\n\r\n", "400 missing Host"},
                      FramingCase{"GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n", "400 more than one Host"}));

// RFC 9110 5.6.1: a list may have empty elements, and be empty.
INSTANTIATE_TEST_SUITE_P(
    Expectations, FramingTest,
    ::testing::Values(FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect:\r\n\r\n", "GET|/||h|0 keep"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect: \t \r\n\r\n", "GET|/||h|0 keep"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect: , ,\r\n\r\n", "GET|/||h|0 keep"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue, 100-continue,\r\n\r\n",
                                  "GET|/||h|0 keep"},
                      FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect:\r\nExpect: tea\r\n\r\n", "417 "},
                      FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue, tea\r\n\r\n", "417 "},
                      FramingCase{"GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue;a=b\r\n\r\n", "417 "}));

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
      const char* from = bytes.data() + random.below(static_cast<std::uint32_t>(bytes.size() - n + 1));
      if (random.below(2) == 0) {
        input.append(std::as_bytes(std::span(from, n)));
      } else {
        const auto space = input.space();
        ASSERT_GE(space.size(), Input::kReadBytes / 2);
        n = std::min(n, space.size());
        std::memcpy(space.data(), from, n);
        input.filled(n);
      }
      sent.append(from, n);
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
      input.give_back_above(random.below(2000));
      ASSERT_EQ(pinned, expected);
    }
    input.end_request();
    ASSERT_EQ(input.unread(), std::string_view(sent).substr(taken));
  }
}

TEST(HeadParser, AnUnknownMethodEndsAtTheLimitToo) {
  const std::string text = std::string(60, '\n') + "UNKNOWN";
  const AtPageEnd copy(text);
  auto head = std::make_unique<RequestHead>();
  HeadParser parser;
  const HeadLimits limits{.head_bytes = 64};
  parser.begin(*head, limits);
  const auto complete = parser.feed_head(copy.begin(), text.size());
  ASSERT_FALSE(complete) << "it would wait for ever";
  EXPECT_EQ(complete.error().code, ParseErrc::kStartLineTooLong);
}

// -- Line ends, whatever the parser before has made of them.

class LineEnds : public ::testing::Test {
 protected:
  // The verdict on the request with one byte changed after it has been parsed.
  std::string with(std::size_t at, char changed) {
    auto head = std::make_unique<RequestHead>();
    HeadParser parser;
    const HeadLimits limits;
    parser.begin(*head, limits);
    const AtPageEnd copy(kRequest);
    const auto complete = parser.feed_head(copy.begin(), kRequest.size());
    EXPECT_TRUE(complete && *complete);
    copy.begin()[at] = changed;
    const auto framed = frame_request(copy.begin(), *head);
    return framed ? "" : std::string(framed.error().text);
  }

  static constexpr std::string_view kRequest =
      "GET /a/path HTTP/1.1\r\nHost: example.org\r\nX-Tabs: a\tb\t\xc3\xbc\r\nAccept: */*\r\n\r\n";
};

TEST_F(LineEnds, EachIsBothBytes) {
  for (std::size_t at = 0; at < kRequest.size(); ++at) {
    SCOPED_TRACE(at);
    if (kRequest[at] == '\n') {
      EXPECT_EQ(with(at, 'x'), "carriage return inside a line");
    } else if (kRequest[at] == '\r') {
      EXPECT_EQ(with(at, 'x'), "line does not end in CRLF");
    } else {
      EXPECT_EQ(with(at, '\r'), "carriage return inside a line");
      EXPECT_EQ(with(at, '\n'), "line does not end in CRLF");
    }
  }
}

TEST_F(LineEnds, NoLineBeginsWithASpace) {
  for (std::size_t at = kRequest.find('\n') + 1; at < kRequest.size() - 2; at = kRequest.find('\n', at) + 1) {
    SCOPED_TRACE(at);
    EXPECT_EQ(with(at, ' '), "folded header field");
    EXPECT_EQ(with(at, '\t'), "folded header field");
  }
}

TEST(FindControlChar, FindsTheFirstInEveryWord) {
  for (std::size_t size = 0; size < 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string text(size, '\x20');
      for (std::size_t i = 0; i < size; ++i) text[i] = i % 3 == 0 ? '\xff' : i % 3 == 1 ? '\x20' : '\x80';
      text[at] = '\x1f';
      const AtPageEnd copy(text);
      const std::string_view view(copy.begin(), size);
      for (std::size_t from = 0; from <= size; ++from)
        ASSERT_EQ(find_control_char(view, from), from <= at ? at : size) << size << " " << at << " " << from;
      text[size - 1] = '\0';
      ASSERT_EQ(find_control_char(text, at + 1), at + 1 < size ? size - 1 : size);
    }
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

template <std::size_t kBytes>
std::string hex_of(const std::array<unsigned char, kBytes>& digest) {
  std::string hex;
  for (const unsigned char byte : digest)
    hex.append(1, "0123456789abcdef"[byte >> 4]).append(1, "0123456789abcdef"[byte & 15]);
  return hex;
}

// The examples of FIPS 180-2.
TEST(Digest, IsThatOfTheStandard) {
  constexpr std::string_view kLong = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  EXPECT_EQ(hex_of(sha1_of("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex_of(sha1_of(kLong)), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex_of(sha256_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(sha256_of(kLong)), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_of(sha256_of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
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
