// What no client may take for a response: raw answers of a server that is broken or hostile, over real connections.
#include <gtest/gtest.h>
#include <tuza/http/tests/client_testing.h>

#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using namespace std::string_literals;

using Documents = std::vector<std::string>;

// Each line with the end of a head behind it.
Documents with_head_end(const Documents& lines) {
  Documents all;
  for (const std::string& line : lines) all.push_back(line + "\r\nContent-Length: 0\r\n\r\n");
  return all;
}

Documents status_lines() {
  return with_head_end({"",
                        " HTTP/1.1 200 OK",
                        "\r\nHTTP/1.1 200 OK",
                        "\nHTTP/1.1 200 OK",
                        "\tHTTP/1.1 200 OK",
                        "x",
                        "HTTP",
                        "HTTP/1.1",
                        "HTTP/1.1 ",
                        "HTTP/1.1 2",
                        "HTTP/1.1 20",
                        "HTTP/1.1 20 OK",
                        "HTTP/1.1 2000 OK",
                        "HTTP/1.1 099 OK",
                        "HTTP/1.1 000 OK",
                        "HTTP/1.1 -20 OK",
                        "HTTP/1.1 +20 OK",
                        "HTTP/1.1 2x0 OK",
                        "HTTP/1.1 20x OK",
                        "HTTP/1.1 x00 OK",
                        "HTTP/1.1 0x1 OK",
                        "HTTP/1.1 OK",
                        "HTTP/1.1 OK 200",
                        "HTTP/1.1  200 OK",
                        "HTTP/1.1\t200 OK",
                        "HTTP/1.1 200\tOK",
                        "HTTP/1.1 200OK",
                        "HTTP/1.1200 OK",
                        "HTTP/1.1 200 O\x01K",
                        "HTTP/1.1 200 O\x7fK",
                        "HTTP/1.1 200 O\0K"s,
                        "HTTP/1.1 200 O\rK",
                        "HTTP/1.22 200 OK",
                        "HTTP/1.:1 200 OK",
                        "HTTP/0.9 200 OK",
                        "HTTP/2.0 200 OK",
                        "HTTP/2 200 OK",
                        "HTTP/3.0 200 OK",
                        "HTTP/1. 200 OK",
                        "HTTP/.1 200 OK",
                        "HTTP/1 200 OK",
                        "HTTP/11 200 OK",
                        "HTTP/1.10 200 OK",
                        "HTTP/1.1.1 200 OK",
                        "HTTP/01.1 200 OK",
                        "HTTP/a.b 200 OK",
                        "HTTP 1.1 200 OK",
                        "HTTP1.1 200 OK",
                        "HTTPS/1.1 200 OK",
                        "http/1.1 200 OK",
                        "Http/1.1 200 OK",
                        "XTTP/1.1 200 OK",
                        "ICY 200 OK",
                        "RTSP/1.0 200 OK",
                        "SIP/2.0 200 OK",
                        "GET / HTTP/1.1",
                        "SSH-2.0-OpenSSH_9.2",
                        "220 mail.example ESMTP",
                        "+OK ready",
                        "<!DOCTYPE html>",
                        "{\"status\": 200}",
                        "\x16\x03\x01\x02",
                        "PRI * HTTP/2.0"});
}

Documents fields() {
  Documents all;
  for (const std::string& field :
       {"A"s,           ":"s,        ": b"s,        " A: b"s,       "\tA: b"s,    "A : b"s,
        "A\t: b"s,      "A b: c"s,   "A(b): c"s,    "A,b: c"s,      "A;b: c"s,    "A/b: c"s,
        "A=b: c"s,      "A@b: c"s,   "A[b]: c"s,    "A{b}: c"s,     "A\"b\": c"s, "A\\b: c"s,
        "\xc3\x84: b"s, "A\x01: b"s, "A\0: b"s,     "A: b\0c"s,     "A: b\x01"s,  "A: b\x7f"s,
        "A: b\rc"s,     "A: b\r\r"s, "A: b\r\n c"s, "A: b\r\n\tc"s, "A: b\n c"s,  "A: b\nC: d"s}) {
    all.push_back("HTTP/1.1 200 OK\r\n" + field + "\r\nContent-Length: 0\r\n\r\n");
    all.push_back("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + field + "\r\n\r\n");
  }
  for (const char* end : {"\n\n", "\r\n\n", "\n\r\n", "\r\r\n", "\r\n\r", "\n"})
    all.push_back("HTTP/1.1 200 OK\r\nContent-Length: 0"s + end);
  return all;
}

Documents lengths() {
  Documents all;
  for (const std::string& length : {""s,
                                    " "s,
                                    "x"s,
                                    "-1"s,
                                    "+1"s,
                                    "1x"s,
                                    "x1"s,
                                    "1 2"s,
                                    "1,1"s,
                                    "1, 1"s,
                                    "1, 2"s,
                                    "1;2"s,
                                    "0x1"s,
                                    "1e1"s,
                                    "1.0"s,
                                    "\"1\""s,
                                    "'1'"s,
                                    "\xef\xbc\x91"s,
                                    "1\v"s,
                                    "1\f"s,
                                    "4611686018427387905"s,
                                    "9223372036854775808"s,
                                    "18446744073709551615"s,
                                    "18446744073709551616"s,
                                    "99999999999999999999999999999999999"s}) {
    all.push_back("HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\nx");
  }
  for (const std::string& both :
       {"Content-Length: 1\r\nContent-Length: 1"s, "Content-Length: 1\r\nContent-Length: 2"s,
        "Content-Length: 1\r\ncontent-length: 1"s, "Content-Length: 1\r\nX: y\r\nContent-Length: 0"s,
        "Content-Length: 1\r\nTransfer-Encoding: chunked"s,
        "Transfer-Encoding: chunked\r\nContent-Length: 1"s,
        "Content-Length: 1\r\nTransfer-Encoding: identity"s, "Content-Length: 1\r\nTransfer-Encoding:"s,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"s,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip"s}) {
    all.push_back("HTTP/1.1 200 OK\r\n" + both + "\r\n\r\n0\r\n\r\n");
  }
  for (const std::string& coding :
       {"x"s, "gzip"s, "identity"s, "gzip, chunked"s, "chunked, gzip"s, "chunked, chunked"s, "chunked,"s,
        ", chunked"s, "chunked; a=b"s, "\"chunked\""s, "xchunked"s, "chunkedx"s, "chunked x"s, "chun ked"s,
        "chunked\v"s,
        "\x0b"
        "chunked"s,
        "identity, chunked"s}) {
    all.push_back("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding + "\r\n\r\n0\r\n\r\n");
  }
  all.push_back("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  for (const char* head : {"204 No Content", "100 Continue", "103 Early Hints"}) {
    all.push_back("HTTP/1.1 "s + head + "\r\nContent-Length: 5\r\n\r\nhello");
    all.push_back("HTTP/1.1 "s + head + "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  }
  return all;
}

Documents chunks() {
  Documents all;
  for (const std::string& body : {"\r\n"s,
                                  "x\r\n"s,
                                  "-1\r\n"s,
                                  "+1\r\na\r\n0\r\n\r\n"s,
                                  " 1\r\na\r\n0\r\n\r\n"s,
                                  "0x1\r\na\r\n0\r\n\r\n"s,
                                  "1\na\n0\n\n"s,
                                  "1\r\na\n0\r\n\r\n"s,
                                  "1\na\r\n0\r\n\r\n"s,
                                  "1\r\na\r\n0\n\n"s,
                                  "1\r\na\r\n0\r\n\n"s,
                                  "1\ra\r0\r\r"s,
                                  "1\r\nab\r\n0\r\n\r\n"s,
                                  "2\r\na\r\n0\r\n\r\n"s,
                                  "1\r\na0\r\n\r\n"s,
                                  "1\r\na\r0\r\n\r\n"s,
                                  "1;\r\na\r\n0\r\n\r\n"s,
                                  "1;=b\r\na\r\n0\r\n\r\n"s,
                                  "1;a=\r\na\r\n0\r\n\r\n"s,
                                  "1;a=\"b\r\na\r\n0\r\n\r\n"s,
                                  "1;a=b c\r\na\r\n0\r\n\r\n"s,
                                  "1;a\0b\r\na\r\n0\r\n\r\n"s,
                                  "1;a\nb\r\na\r\n0\r\n\r\n"s,
                                  "1 a\r\na\r\n0\r\n\r\n"s,
                                  "1,\r\na\r\n0\r\n\r\n"s,
                                  "10000000000000000\r\na\r\n0\r\n\r\n"s,
                                  "FFFFFFFFFFFFFFFFF\r\na\r\n0\r\n\r\n"s,
                                  "1\r\na\r\n0\r\nA\r\n\r\n"s,
                                  "1\r\na\r\n0\r\n: b\r\n\r\n"s,
                                  "1\r\na\r\n0\r\nA : b\r\n\r\n"s,
                                  "1\r\na\r\n0\r\n A: b\r\n\r\n"s,
                                  "1\r\na\r\n0\r\nA: b\n\r\n"s,
                                  "1\r\na\r\n0\r\nA: b\r\n c\r\n\r\n"s,
                                  "1\r\na\r\n0\r\nA: b\0c\r\n\r\n"s,
                                  "1\r\na\r\n0\r\nA(b): c\r\n\r\n"s,
                                  "1;" + std::string(70'000, 'a') + "\r\na\r\n0\r\n\r\n",
                                  "1\r\na\r\n0\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n"}) {
    all.push_back("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
  }
  return all;
}

// The server closes in the middle.
Documents cut_off() {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  const std::string coded =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
  Documents all;
  for (std::size_t size = 0; size < head.size() + 5; ++size) all.push_back((head + "hello").substr(0, size));
  for (std::size_t size = coded.find("\r\n\r\n"); size < coded.size(); ++size)
    all.push_back(coded.substr(0, size));
  return all;
}

// Every document is an error, and its connection is never used again.
void expect_refused(const Documents& documents, Errc code) {
  run_with(2, [&] {
    Client client;
    for (const std::string& bytes : documents) {
      ScriptedServer server(bytes);
      Result<ClientResponse> res = client.get(kNoContext, server.url());
      const Result<std::string> body = res ? res->body() : Result<std::string>(std::unexpected(res.error()));
      ASSERT_FALSE(body) << ::testing::PrintToString(bytes.substr(0, 200));
      EXPECT_TRUE(body.error().is(code) || body.error().is(Errc::kEndOfStream))
          << ::testing::PrintToString(bytes.substr(0, 200)) << ": " << body.error().message();
    }
    for (int i = 0; i < 2'000 && client.stats().open > 0; ++i) sleep_for(1ms);
    EXPECT_EQ(client.stats().open, 0u);
    EXPECT_EQ(client.stats().dialled, documents.size());
  });
}

TEST(ClientDocuments, WithAMalformedStatusLineAreRefused) {
  expect_refused(status_lines(), Errc::kBadMessage);
}
TEST(ClientDocuments, WithAMalformedFieldAreRefused) { expect_refused(fields(), Errc::kBadMessage); }
TEST(ClientDocuments, WithADubiousLengthAreRefused) { expect_refused(lengths(), Errc::kBadMessage); }
TEST(ClientDocuments, WithAMalformedChunkAreRefused) { expect_refused(chunks(), Errc::kBadMessage); }
TEST(ClientDocuments, ThatAreCutOffAreNamedSo) { expect_refused(cut_off(), Errc::kEndOfStream); }

}  // namespace
}  // namespace tuza::http::testing
