// The chunked coding of bodies, and trailers both ways.
#include <gtest/gtest.h>
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/at_page_end.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/wire/chunk_decoder.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace tuza::http {
namespace {

using namespace testing;
using tuza::testing::run_with;

std::string in_chunks(std::string_view body, std::size_t step, std::string& decoded) {
  const ServerOptions options;
  ChunkDecoder decoder;
  decoder.begin(options.chunk_overhead_bytes_max);
  std::size_t at = 0;
  while (at < body.size()) {
    const AtPageEnd piece(body.substr(at, step));
    std::string_view left(piece.begin(), std::min(step, body.size() - at));
    while (!left.empty()) {
      const auto did = decoder.feed(left);
      if (!did) return "refused";
      decoded += did->data;
      left.remove_prefix(did->consumed);
      at += did->consumed;
      if (did->complete) return "complete at " + std::to_string(at);
    }
  }
  return "more";
}

TEST(ChunkDecoder, DecodesChunksHoweverTheyArrive) {
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

// Bytes that are not data count, also if they arrive in several pieces; a byte of data pays for eight.
TEST(ChunkDecoder, LimitsChunkOverheadHoweverItArrives) {
  ServerOptions options;
  options.chunk_overhead_bytes_max = 20;
  const auto is_within_limit = [&options](std::string body, std::size_t split) {
    ChunkDecoder decoder;
    decoder.begin(options.chunk_overhead_bytes_max);
    for (std::string_view left :
         {std::string_view(body).substr(0, split), std::string_view(body).substr(split)}) {
      while (!left.empty()) {
        const auto step = decoder.feed(left);
        if (!step) return false;
        left.remove_prefix(step->consumed);
      }
    }
    return true;
  };
  const std::string at_limit = "1\r\na\r\n1;" + std::string(14, 'x') + "\r\nb\r\n0\r\n\r\n";
  const std::string above = "1\r\na\r\n1;" + std::string(15, 'x') + "\r\nb\r\n0\r\n\r\n";
  for (std::size_t split = 1; split < at_limit.size(); ++split) {
    EXPECT_TRUE(is_within_limit(at_limit, split)) << "split at " << split;
    EXPECT_FALSE(is_within_limit(above, split)) << "split at " << split;
  }
}

std::string verdict_of(std::string_view line) {
  ServerOptions options;
  ChunkDecoder decoder;
  decoder.begin(options.chunk_overhead_bytes_max);
  const std::string body = std::string(line) + "\r\nhello\r\n0\r\n\r\n";
  std::string decoded;
  for (std::string_view left = body; !left.empty();) {
    const auto step = decoder.feed(left);
    if (!step) return std::string(step.error().text);
    decoded += step->data;
    left.remove_prefix(step->consumed);
    if (step->complete) return left.empty() ? decoded : "early end";
  }
  return "more";
}

// RFC 9112 7.1.1: well-formed extensions are ignored, others are malformed.
TEST(ChunkDecoder, IgnoresExtensions) {
  for (const char* line : {"5", "05", "5;a", "5;a=b", "5;a=b;c=d", "5;a;b;c", "5;a=\"\"", "5;a=\"x\\\"y\"",
                           "5;a=\"q;\t=\x80\\\\\"", "5 ;a=b", "5\t; a=b", "5; a=b", "5;a = b",
                           "5;a =\"b\" ;c", "5;a ;b", "5; a = \"b\";c\t=\td"}) {
    EXPECT_EQ(verdict_of(line), "hello") << line;
  }
  for (const char* line :
       {"5;",           "5;=",          "5;=b",   "5;a=",    "5;a=b=c",   "5;a b",      "5;a=b c",
        "5 ",           "5;a ",         "5;a=b ", "5;;a",    "5;a=\"b",   "5;a=\"b\"c", "5;a=\"b\\",
        "5;a=\"\x01\"", "5;a=\"\x7f\"", "5;a=(",  "5;\"a\"", "5;a=b\r;c", "5 a"}) {
    EXPECT_TRUE(verdict_of(line) == "malformed chunk extension" ||
                verdict_of(line) == "line does not end in CRLF" || verdict_of(line) == "malformed chunk size")
        << line << ": " << verdict_of(line);
  }
  for (const char* line : {"", "x", " 5", "+5", "-5", "0x5", "5x", "10000000000000000", ";a"}) {
    EXPECT_EQ(verdict_of(line), "malformed chunk size") << line;
  }
  for (const char* line : {"5\n", "5;a\n", "5;a=\"b\n\"", "5\r"}) {
    EXPECT_EQ(verdict_of(line), "line does not end in CRLF") << line;
  }
}

std::string list(const auto& fields) {
  std::string text;
  for (const auto& [name, value] : fields) text.append(name).append("=").append(value).append(";");
  return text;
}

TEST(Trailers, OfARequestAreReadBehindItsBody) {
  const Handler handler = [](Request& req, ResponseWriter& res) {
    EXPECT_EQ(list(req.trailers()), "");
    const Result<std::string_view> body = req.body();
    if (!body) return;
    std::string text(*body);
    text.append("|").append(list(req.trailers())).append("|").append(req.trailer("DIGEST").value_or("none"));
    res.text(text);
  };
  EXPECT_EQ(call(handler, "POST /", {.body = "abc", .trailers = {{"Digest", "1 \t2"}, {"Empty", ""}}}).body,
            "abc|Digest=1 \t2;Empty=;|1 \t2");
  EXPECT_EQ(call(handler, "POST /", {.body = "abc"}).body, "abc||none");
  run_with(2, [&handler] {
    TestServer server([&handler](Request& req, ResponseWriter& res) { handler(req, res); });
    const auto with_end = [](std::string_view end) {
      return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" +
             std::string(end) + "\r\n";
    };
    EXPECT_EQ(fetch(server.address(), with_end("Digest:  x:   y \t\r\nA:\r\n")).body,
              "abc|Digest=x:   y;A=;|x:   y");
    // The trailers of one request are not those of the next on the same connection.
    RawClient client(server.address());
    client.send(with_end("Digest: x\r\n") + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz" +
                with_end(""));
    const auto all = client.read_responses(3);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].body, "abc|Digest=x;|x");
    EXPECT_EQ(all[1].body, "z||none");
    EXPECT_EQ(all[2].body, "abc||none");
    for (const char* bad :
         {": y\r\n", "A\r\n", "A : b\r\n", " A: b\r\n", "A: b\r\n c\r\n", "A: \x01\r\n", "A: b\n"}) {
      EXPECT_EQ(fetch(server.address(), with_end(bad)).status, 400) << bad;
    }
  });
}

TEST(Trailers, OfAResponseComeBehindItsChunks) {
  Router router;
  router.handle("GET /small", [](Request&, ResponseWriter& res) {
    res.add_trailer("Digest", "1");
    res.text("small");
  });
  router.handle("GET /behind", [](Request&, ResponseWriter& res) {
    res.text("small");
    res.add_trailer("Digest", "2");
  });
  router.handle("GET /none", [](Request&, ResponseWriter& res) { res.add_trailer("Digest", "3"); });
  router.handle("GET /stream", [](Request&, ResponseWriter& res) {
    (void)res.write(std::string(40'000, 'a'));
    res.add_trailer("Digest", "4");
    res.add_trailer("X-Second", "5");
  });
  router.handle("GET /whole", [](Request&, ResponseWriter& res) {
    res.add_trailer("Digest", "7");
    res.text(std::string(40'000, 'a'));
  });
  router.handle("GET /length", [](Request&, ResponseWriter& res) {
    res.add_trailer("Digest", "8");
    res.set_header("Content-Length", "40000");
    (void)res.write(std::string(40'000, 'a'));
  });
  router.handle("GET /error", [](Request&, ResponseWriter& res) {
    res.add_trailer("Digest", "6");
    res.error(404);
  });
  router.handle("GET /wrong", [](Request&, ResponseWriter& res) {
    for (const char* name :
         {"Content-Length", "transfer-encoding", "Host", "Trailer", "Set-Cookie", "A B", ""}) {
      EXPECT_THROW(res.add_trailer(name, "x"), std::invalid_argument) << name;
    }
    EXPECT_THROW(res.add_trailer("A", "x\r\nB: y"), std::invalid_argument);
    res.text("ok");
  });
  const auto small = call(router, "GET /small");
  EXPECT_EQ(small.body, "small");
  EXPECT_EQ(list(small.trailers), "Digest=1;");
  EXPECT_EQ(small.header("Content-Length"), std::nullopt);
  EXPECT_EQ(list(call(router, "HEAD /small").trailers), "");
  EXPECT_EQ(call(router, "GET /wrong").body, "ok");
  run_with(2, [&router] {
    TestServer server(std::move(router));
    const auto raw = [&server](std::string_view path, std::string_view version = "1.1") {
      RawClient client(server.address());
      client.send("GET " + std::string(path) + " HTTP/" + std::string(version) +
                  "\r\nHost: a\r\nConnection: close\r\n\r\n");
      client.read_until_closed();
      return client.received();
    };
    EXPECT_TRUE(raw("/small").ends_with("\r\n\r\n5\r\nsmall\r\n0\r\nDigest: 1\r\n\r\n"));
    EXPECT_TRUE(raw("/behind").ends_with("\r\n\r\n5\r\nsmall\r\n0\r\nDigest: 2\r\n\r\n"));
    EXPECT_TRUE(raw("/none").ends_with("\r\n\r\n0\r\nDigest: 3\r\n\r\n"));
    EXPECT_TRUE(raw("/stream").ends_with("a\r\n0\r\nDigest: 4\r\nX-Second: 5\r\n\r\n"));
    EXPECT_TRUE(raw("/whole").ends_with("a\r\n0\r\nDigest: 7\r\n\r\n"));
    EXPECT_TRUE(raw("/length").ends_with("a\r\n0\r\nDigest: 8\r\n\r\n"));
    EXPECT_TRUE(raw("/error").ends_with("\r\n\r\nNot Found\n"));
    EXPECT_TRUE(raw("/small", "1.0").ends_with("\r\n\r\nsmall"));
  });
}

}  // namespace
}  // namespace tuza::http
