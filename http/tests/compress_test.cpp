// Compressed responses and requests: what is compressed and what is not, streams, bombs, broken bodies.
#include <tuza/http/codec/codec.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/middleware/decompress.h>
#include <tuza/http/middleware/etag.h>
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/coded_text.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/chan.h>

#include <random>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

// What can be decoded of `text`, through a buffer of `piece` bytes; `state`: where it ends.
std::string decoded(std::string_view coding, std::string_view text, Decoder::State* state = nullptr,
                    std::size_t piece = 1000) {
  const auto decoder = make_decoder(*coding_named(coding));
  std::string out, buffer(piece, '\0');
  for (;;) {
    const Decoder::Progress progress = decoder->decode(text, buffer);
    out.append(buffer, 0, progress.produced);
    if (state != nullptr) *state = progress.state;
    const bool stuck = progress.produced == 0 && text.empty();
    if (progress.state == Decoder::State::kMalformed || stuck) return out;
  }
}

std::string noise(std::size_t bytes) {
  std::mt19937 random(7);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

CallOptions accepts(std::string codings) { return {.headers = {{"Accept-Encoding", std::move(codings)}}}; }

TEST(CodecTest, EachReadsWhatItHasWritten) {
  for (const std::string& coding : codings()) {
    for (const std::size_t bytes : {0u, 1u, 1000u, 300'000u}) {
      for (const std::string& text : {words(bytes), noise(bytes)}) {
        const std::string coded = encoded(coding, text);
        for (const std::size_t piece : {1u, 4096u}) {
          if (piece == 1 && bytes > 1000) continue;
          Decoder::State state{};
          EXPECT_EQ(decoded(coding, coded, &state, piece), text) << coding << bytes;
          EXPECT_EQ(state, Decoder::State::kEnd) << coding << bytes;
        }
      }
    }
  }
}

TEST(CompressTest, CompressesWhatTheClientAccepts) {
  const std::string text = words(10'000);
  const Handler handler = with([&](Request&, ResponseWriter& res) { res.text(text); }, compress());
  for (const std::string& coding : codings()) {
    const CallResult res = call(handler, "GET /", accepts(coding));
    EXPECT_EQ(res.header("Content-Encoding"), coding);
    EXPECT_EQ(res.header("Vary"), "Accept-Encoding");
    EXPECT_EQ(res.header("Content-Length"), std::to_string(res.body.size()));
    EXPECT_LT(res.body.size(), text.size() / 2);
    EXPECT_EQ(decoded(coding, res.body), text);
  }
  for (const char* none :
       {"", "identity", "deflate", "gzip;q=0", "gzip;q=0, *;q=0.0", "identity;q=1, gzip;q=0.5"}) {
    const CallResult res = call(handler, "GET /", accepts(none));
    EXPECT_FALSE(res.header("Content-Encoding")) << none;
    EXPECT_EQ(res.header("Vary"), "Accept-Encoding");
    EXPECT_EQ(res.body, text);
  }
  EXPECT_EQ(call(handler, "GET /", accepts("br;q=0.2, gzip;q=0.9, zstd;q=0.1")).header("Content-Encoding"),
            "gzip");
}

TEST(CompressTest, LeavesAloneWhatItMustNotOrNeedNotChange) {
  const Handler handler = with(
      [](Request& req, ResponseWriter& res) {
        const std::string_view query = req.query();
        if (query == "encoded") res.set_header("Content-Encoding", "br");
        if (query == "no-transform") res.set_header("Cache-Control", "public, No-Transform");
        if (query == "digest") res.set_header("Repr-Digest", "sha-256=:x:");
        if (query == "range") {
          res.status(206);
          res.set_header("Content-Range", "bytes 0-9999/20000");
        }
        if (query == "204" || query == "304") res.status(query == "204" ? 204 : 304);
        res.send(query == "image" ? "image/png" : "application/problem+json; charset=utf-8",
                 query == "small"   ? words(1023)
                 : query == "noise" ? noise(10'000)
                                    : words(10'000));
      },
      compress());
  EXPECT_TRUE(call(handler, "GET /?yes", accepts("gzip")).header("Content-Encoding"));
  for (const char* query : {"no-transform", "digest", "range", "204", "304", "image", "small", "noise"}) {
    const CallResult res = call(handler, std::string("GET /?") + query, accepts("gzip"));
    EXPECT_FALSE(res.header("Content-Encoding")) << query;
    // Of another request's answer these would be compressed: 304 has the fields of what is stored, 206 a part of it.
    const bool depends = std::string_view("small noise 304 range").contains(query);
    EXPECT_EQ(res.header("Vary").has_value(), depends) << query;
  }
  const CallResult twice = call(handler, "GET /?encoded", accepts("gzip"));
  EXPECT_EQ(twice.header("Content-Encoding"), "br");
  EXPECT_EQ(twice.body, words(10'000));
}

TEST(CompressTest, AnswersHeadAsGet) {
  const Handler handler = with([](Request&, ResponseWriter& res) { res.text(words(10'000)); }, compress());
  const CallResult head = call(handler, "HEAD /", accepts("gzip"));
  EXPECT_EQ(head.header("Content-Encoding"), "gzip");
  EXPECT_EQ(head.header("Vary"), "Accept-Encoding");
  EXPECT_FALSE(head.header("Content-Length"));  // that of the compressed body, which nobody has made
  EXPECT_EQ(head.body, "");
}

TEST(CompressTest, WeakensTags) {
  const Handler handler = with(
      [](Request&, ResponseWriter& res) {
        res.set_header("Accept-Ranges", "bytes");
        res.text(words(5000));
      },
      compress(), etag());
  const std::string strong(call(handler, "GET /").header("ETag").value());
  const CallResult weak = call(handler, "GET /", accepts("gzip"));
  EXPECT_EQ(weak.header("ETag"), "W/" + strong);
  EXPECT_FALSE(weak.header("Accept-Ranges"));
  CallOptions again = accepts("gzip");
  again.headers.emplace_back("If-None-Match", "W/" + strong);
  const CallResult not_modified = call(handler, "GET /", again);
  EXPECT_EQ(not_modified.status, 304);
  EXPECT_EQ(not_modified.header("ETag"), "W/" + strong);
  EXPECT_EQ(not_modified.header("Vary"), "Accept-Encoding");
  again.headers.back().second = strong;  // a client that has it as it is
  EXPECT_EQ(call(handler, "GET /", again).header("ETag"), strong);
}

TEST(CompressTest, StreamsPieceByPiece) {
  const std::string text = words(200'000);
  const Handler handler = with(
      [&](Request& req, ResponseWriter& res) {
        if (req.query() == "whole") return res.text(text);
        res.set_header("Content-Type", "text/csv");
        if (req.query() == "length") res.set_header("Content-Length", std::to_string(text.size()));
        if (req.query() == "short") res.set_header("Content-Length", std::to_string(text.size() + 1));
        for (std::size_t at = 0; at < text.size(); at += 7000) {
          if (!res.write(std::string_view(text).substr(at, 7000))) return;
        }
      },
      compress());
  for (const std::string& coding : codings()) {
    for (const char* query : {"whole", "length", "pieces"}) {
      const CallResult res = call(handler, std::string("GET /?") + query, accepts(coding));
      EXPECT_EQ(res.header("Content-Encoding"), coding);
      EXPECT_FALSE(res.header("Content-Length"));
      EXPECT_TRUE(res.complete);
      Decoder::State state{};
      EXPECT_TRUE(decoded(coding, res.body, &state) == text) << coding << query;
      EXPECT_EQ(state, Decoder::State::kEnd);
    }
    // Less than it has promised: the end of the coding is missing, and that of the response.
    const CallResult cut = call(handler, "GET /?short", accepts(coding));
    EXPECT_FALSE(cut.complete);
    EXPECT_TRUE(cut.closes);
    Decoder::State state{};
    (void)decoded(coding, cut.body, &state);
    EXPECT_EQ(state, Decoder::State::kMore) << coding;
  }
}

TEST(CompressTest, AnExceptionInAStreamCutsItOff) {
  const Handler handler = with(
      [](Request& req, ResponseWriter& res) {
        res.set_header("Content-Type", "text/plain");
        (void)res.write(words(50'000));
        if (req.query() == "twice") res.text("x");  // std::logic_error
        throw std::runtime_error("on purpose");
      },
      compress());
  for (const std::string& coding : codings()) {
    for (int i = 0; i < 3; ++i) {  // with the encoder that was left in the middle of a stream
      const CallResult cut = call(handler, "GET /", accepts(coding));
      EXPECT_FALSE(cut.complete);
      Decoder::State state{};
      (void)decoded(coding, cut.body, &state);
      EXPECT_EQ(state, Decoder::State::kMore);
    }
  }
  const Handler early = with(
      [](Request&, ResponseWriter& res) {
        (void)res.write(words(5000));
        throw StatusError(403, words(2000));
      },
      compress());
  const CallResult refused = call(early, "GET /", accepts("gzip"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body, words(2000) + "\n");
}

TEST(CompressTest, FlushedBytesCanBeDecodedAtOnce) {
  for (const std::string& coding : codings()) {
    run_with(2, [&] {
      Chan<int> go_on;
      TestServer server(with(
          [&](Request&, ResponseWriter& res) {
            res.set_header("Content-Type", "text/event-stream");
            (void)res.write("data: one\n\n");
            (void)res.flush();
            (void)go_on.recv();
            (void)res.write("data: two\n\n");
          },
          compress()));
      RawClient client(server.address());
      client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept-Encoding: " + coding +
                  "\r\n\r\n");
      const auto body = [&] {
        const std::string& seen = client.received();
        const std::size_t at = seen.find("\r\n\r\n");
        std::string_view left =
            at == std::string::npos ? std::string_view() : std::string_view(seen).substr(at + 4);
        std::string data;
        while (!left.empty()) {
          if (!left.contains("\r\n")) break;
          const std::size_t size = std::stoul(std::string(left.substr(0, left.find("\r\n"))), nullptr, 16);
          left.remove_prefix(left.find("\r\n") + 2);
          data += left.substr(0, size);
          left.remove_prefix(std::min(left.size(), size + 2));
        }
        return decoded(coding, data);
      };
      client.read_until([&] { return body().contains("one"); });
      EXPECT_EQ(body(), "data: one\n\n");
      go_on.close();
      client.read_until_closed();
      EXPECT_EQ(body(), "data: one\n\ndata: two\n\n");
      EXPECT_TRUE(client.received().ends_with("0\r\n\r\n"));
    });
  }
}

TEST(CompressTest, RefusesBadOptions) {
  const auto make = [](CompressOptions options) {
    (void)compress(std::move(options))(Handler([](Request&, ResponseWriter&) {}));
  };
  EXPECT_THROW(make({.codings = {"deflate"}}), std::invalid_argument);
  EXPECT_THROW(make({.gzip_level = 10}), std::invalid_argument);
  EXPECT_THROW(make({.percent_max = 0}), std::invalid_argument);
}

Handler echo(DecompressOptions options = {}) {
  return with(
      [](Request& req, ResponseWriter& res) {
        if (req.content_length() || req.header("Content-Encoding")) {
          if (req.header("Content-Encoding") != "identity") res.set_header("X-Length", "1");
        }
        if (const auto body = req.body()) res.text(*body);
      },
      decompress(std::move(options)));
}

CallResult post_coded(const Handler& handler, std::string coding, std::string body, bool chunked = false) {
  return call(
      handler, "POST /",
      {.headers = {{"Content-Encoding", std::move(coding)}}, .body = std::move(body), .chunked = chunked});
}

TEST(DecompressTest, HandlersReadTheDecodedBody) {
  const Handler handler = echo();
  for (const std::string& coding : codings()) {
    for (const bool chunked : {false, true}) {
      const CallResult res = post_coded(handler, coding, encoded(coding, words(100'000)), chunked);
      EXPECT_EQ(res.status, 200);
      EXPECT_TRUE(res.body == words(100'000));
      EXPECT_FALSE(res.header("X-Length"));
    }
    EXPECT_EQ(post_coded(handler, coding, encoded(coding, "")).status, 200);
  }
  EXPECT_EQ(post_coded(handler, "identity", "as it is").body, "as it is");
  EXPECT_EQ(post_coded(handler, "x-gzip", encoded("gzip", "a") + encoded("gzip", "b")).body, "ab");
  EXPECT_EQ(call(handler, "GET /").status, 200);
}

TEST(DecompressTest, BombsGet413) {
  for (const std::string& coding : codings()) {
    const std::string bomb = encoded(coding, std::string(64 << 20, '\0'));
    ASSERT_LT(bomb.size(), 100'000u);
    EXPECT_EQ(post_coded(echo(), coding, bomb).status, 413) << coding;
    EXPECT_EQ(post_coded(echo({.bytes_max = 1 << 30}), coding, bomb).status, 413) << coding;  // by its ratio
    const Handler limited = echo({.bytes_max = 1000});
    EXPECT_EQ(post_coded(limited, coding, encoded(coding, words(1000))).status, 200);
    EXPECT_EQ(post_coded(limited, coding, encoded(coding, words(1001))).status, 413);
  }
}

TEST(DecompressTest, BrokenBodiesGet400) {
  for (const std::string& coding : codings()) {
    const std::string whole = encoded(coding, words(5000));
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
      EXPECT_EQ(post_coded(echo(), coding, whole.substr(0, bytes)).status, 400) << coding << bytes;
    }
    EXPECT_EQ(post_coded(echo(), coding, whole + "behind").status, 400) << coding;
    EXPECT_EQ(post_coded(echo(), coding, "plain text").status, 400) << coding;
  }
}

TEST(DecompressTest, UnknownCodingsGet415) {
  for (const char* coding : {"deflate", "compress", "gzip, gzip", "", "gzip;q=1"}) {
    const CallResult res = post_coded(echo(), coding, "x");
    EXPECT_EQ(res.status, 415) << coding;
    EXPECT_TRUE(res.header("Accept-Encoding").value_or("").starts_with("gzip"));
  }
  EXPECT_EQ(post_coded(echo({.codings = {"br"}}), "gzip", encoded("gzip", "a")).status, 415);
}

}  // namespace
}  // namespace tuza::http::testing
