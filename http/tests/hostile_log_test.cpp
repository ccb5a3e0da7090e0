// What a client sends reaches logs escaped, wherever it is logged: it can neither forge a line nor control a terminal.
#include <tuza/http/files/file_errors.h>
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/basic_auth.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/middleware/recover.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/mutex.h>

#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

std::mutex g_mutex;
std::vector<std::string> g_lines;

void keep(LogLevel, std::string_view line) {
  const std::scoped_lock lock(g_mutex);
  g_lines.emplace_back(line);
}
std::vector<std::string> taken() {
  const std::scoped_lock lock(g_mutex);
  return std::exchange(g_lines, {});
}

// Line ends, a colour, U+0085 and U+009B (controls in UTF-8 and as bytes), a change of direction, half a character.
const std::string kHostile =
    "\r\n[forged]\x1b[2J\x7f\xc2\x85\xc2\x9b\x85\x9b\xe2\x80\xae\xe2\x80\xa8\xe2\x82";

// One line of printable UTF-8, but for `end`.
void expect_harmless(std::string_view line, std::string_view end = "") {
  ASSERT_TRUE(line.ends_with(end)) << line;
  for (std::string_view rest = line.substr(0, line.size() - end.size()); !rest.empty();) {
    const detail::Utf8Char c = detail::utf8_char(rest);
    ASSERT_NE(c.bytes, 0u) << "not UTF-8: " << line;
    ASSERT_FALSE(c.code < 0x20 || c.code == 0x7f || detail::is_deceptive(c.code)) << line;
    rest.remove_prefix(c.bytes);
  }
}

class HostileLogTest : public ::testing::Test {
 protected:
  HostileLogTest() { set_log_sink(&keep); }
  ~HostileLogTest() override { set_log_sink(nullptr); }
  // Lines of a limiter that other tests may have used up: asks until there is one.
  template <class Ask>
  static void expect_line(std::string_view part, Ask ask) {
    for (int i = 0; i < 1000; ++i) {
      ask();
      for (const std::string& line : taken()) {
        expect_harmless(line);
        if (line.contains(part)) return;
      }
      sleep_for(10ms);
    }
    FAIL() << "no line with " << part;
  }
};

TEST_F(HostileLogTest, TheServersOwnLines) {
  run_with(1, [] {
    // A target may have bytes above 0x7f; an exception any text.
    const std::string path = "GET /\xc2\x9b\x9b\xe2\x80\xae\xff";
    const Handler throws = [](Request&, ResponseWriter&) { throw std::runtime_error(kHostile); };
    expect_line("has thrown", [&] { EXPECT_EQ(call(throws, path).status, 500); });
    Handler recovered = recover({})([](Request&, ResponseWriter&) { throw std::runtime_error(kHostile); });
    expect_line("has thrown", [&] { EXPECT_EQ(call(recovered, path).status, 500); });
    const Handler returns = [](Request&, ResponseWriter&) -> Result<void> {
      return std::unexpected(Error::from_errno(EIO, "read", std::string(kHostile)));
    };
    expect_line("has thrown", [&] { EXPECT_EQ(call(returns, path).status, 500); });
    const Handler late = [](Request&, ResponseWriter& res) {
      (void)res.flush();
      throw StatusError(502, std::string(kHostile));
    };
    expect_line("the response to GET ", [&] { EXPECT_FALSE(call(late, path).complete); });
    const Handler fails = [](Request&, ResponseWriter& res) { refuse_file(res, -EIO, kHostile); };
    expect_line("file server: ", [&] { EXPECT_EQ(call(fails, "GET /").status, 500); });
  });
}

// Soft hyphen, Mongolian vowel separator, annotations, and "rm" spelt in tags.
TEST_F(HostileLogTest, WhatNobodySeesIsShown) {
  const std::string unseen = "\xc2\xad\xe1\xa0\x8e\xef\xbf\xb9\xf3\xa0\x81\xb2\xf3\xa0\x81\xad";
  std::string text;
  detail::append_log_escaped(text, unseen);
  EXPECT_EQ(text, "\\xc2\\xad\\xe1\\xa0\\x8e\\xef\\xbf\\xb9\\xf3\\xa0\\x81\\xb2\\xf3\\xa0\\x81\\xad");
  EXPECT_EQ(detail::json_escaped(unseen), "\\u00ad\\u180e\\ufff9\\udb40\\udc72\\udb40\\udc6d");
  EXPECT_EQ(detail::json_escaped("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST_F(HostileLogTest, AccessLogs) {
  for (const AccessLogFormat format :
       {AccessLogFormat::kCommon, AccessLogFormat::kCombined, AccessLogFormat::kJson}) {
    std::vector<std::string> lines;
    const AccessLogOptions options{.format = format,
                                   .write = [&](std::string_view line) { lines.emplace_back(line); }};
    const Handler handler =
        with([](Request&, ResponseWriter& res) { res.text("fine"); }, access_log(options),
             basic_auth({.check = [](std::string_view, std::string_view) { return true; }}));
    // Neither a field nor a user, which is decoded from base64, has control characters of ASCII but tabs.
    const std::string field = "\t\xc2\x85\x9b\xe2\x80\xae\"\\ \xe2\x82";
    const CallResult r = call(
        handler, "GET /\x9b?\\\xe2\x80\xa8`{}",
        {.headers = {{"Referer", field}, {"User-Agent", field}, {"Authorization", "Basic YZvCm+KArjp6"}}});
    EXPECT_EQ(r.status, 200);
    const auto refused = refused_log(options);
    refused(
        {.remote = "@" + kHostile, .request_line = "GET " + kHostile, .status = 400, .reason = "malformed"});
    ASSERT_EQ(lines.size(), 2u);
    for (const std::string& line : lines) expect_harmless(line, "\n");
  }
}

// One line for each request, no matter which part of the server answers it.
TEST_F(HostileLogTest, EveryRefusedRequestHasALineInTheAccessLog) {
  run_with(1, [] {
    std::vector<std::string> lines;
    Mutex mutex;
    const AccessLogOptions log{.format = AccessLogFormat::kCommon, .write = [&](std::string_view line) {
                                 const LockGuard lock(mutex);
                                 lines.emplace_back(line);
                               }};
    ServerOptions options;
    options.header_timeout = 20ms;
    options.body_bytes_max = 5;
    options.headers_max = 3;
    options.request_line_bytes_max = 50;
    options.on_refused = refused_log(log);
    TestServer server(with(hello_router(), access_log(log)), options);
    const std::pair<std::string, int> cases[] = {
        {get("/"), 200},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET /" + kHostile + " HTTP/1.1\r\n\r\n", 400},
        {kHostile + "\r\n\r\n", 400},
        {"GET / HT", 408},
        {post("/echo", "123456"), 413},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n0\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {get("/" + std::string(60, 'x')), 414},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417},
        {"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 421},
        {"GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n", 431},
        {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
    };
    for (const auto& [request, status] : cases) {
      EXPECT_EQ(fetch(server.address(), request).status, status) << request;
      const auto count = [&] {
        const LockGuard lock(mutex);
        return lines.size();
      };
      tuza::testing::yield_until([&] { return count() > 0; });
      const LockGuard lock(mutex);
      ASSERT_EQ(lines.size(), 1u) << request;
      expect_harmless(lines[0], "\n");
      EXPECT_TRUE(lines[0].contains("\" " + std::to_string(status) + " ")) << lines[0];
      lines.clear();
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
