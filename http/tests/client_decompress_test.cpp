// Compressed responses: what the client asks for, what it decodes, and what it takes for no body.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/tests/coded_text.h>
#include <tuza/sched/sync/chan.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientDecompressTest : public WithProcs {};
TUZA_WITH_PROCS(ClientDecompressTest);

std::string with_length(std::string_view coding, std::string_view body) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  if (!coding.empty()) text.append("Content-Encoding: ").append(coding).append("\r\n");
  return text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n").append(body);
}

std::string in_chunks(std::string_view coding, std::string_view body, std::size_t piece,
                      std::string_view trailers = "") {
  std::string text = "HTTP/1.1 200 OK\r\nContent-Encoding: " + std::string(coding) +
                     "\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size(); at += piece) {
    const std::string_view data = body.substr(at, piece);
    std::array<char, 20> size{};
    (void)std::snprintf(size.data(), size.size(), "%zx\r\n", data.size());
    text.append(size.data()).append(data).append("\r\n");
  }
  return text.append("0\r\n").append(trailers).append("\r\n");
}

// Answers all requests of a connection: in one write, or in one for each byte.
ScriptedServer::Script answering(std::string bytes, bool byte_by_byte = false) {
  return [bytes = std::move(bytes), byte_by_byte](net::Conn& conn, int) {
    while (!ScriptedServer::read_request(conn).empty()) {
      const std::size_t piece = byte_by_byte ? 1 : bytes.size();
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        if (!conn.write_all(std::string_view(bytes).substr(at, piece))) return;
      }
    }
  };
}

std::string read_in_pieces(ClientResponse& res, std::size_t size) {
  std::string text, piece(size, '\0');
  while (const auto n = res.read(std::span(piece))) {
    if (*n == 0) return text;
    text.append(piece, 0, *n);
  }
  return "an error behind " + text;
}

// The error of the body, which stays.
Error broken(Result<ClientResponse> res) {
  if (!res) return Error(Errc::kOther, "send", res.error().message());
  const Result<std::string> body = res->body();
  if (body) return Error(Errc::kOther, "none");
  std::array<std::byte, 10> more;
  const Result<std::size_t> again = res->read(more);
  EXPECT_TRUE(!again && again.error().message() == body.error().message());
  return body.error();
}

TEST_P(ClientDecompressTest, BodiesAreDecodedAndTheirConnectionsKept) {
  run_with(GetParam(), [] {
    const std::string text = words(20'000), empty;
    for (const std::string& coding : codings()) {
      const std::string body = encoded(coding, text), nothing = encoded(coding, "");
      const auto expect = [&](ScriptedServer& server, const std::string& wanted) {
        Client client;
        for (const std::size_t piece : {std::size_t{1}, std::size_t{777}, std::size_t{100'000}}) {
          Result<ClientResponse> res = client.get(kNoContext, server.url());
          ASSERT_TRUE(res) << res.error().message();
          EXPECT_TRUE(res->decompressed());
          EXPECT_EQ(res->content_length(), std::nullopt);
          EXPECT_EQ(res->header("Content-Encoding"), std::nullopt);
          EXPECT_EQ(res->header("Content-Length"), std::nullopt);
          EXPECT_TRUE(read_in_pieces(*res, piece) == wanted) << coding << piece;
        }
        EXPECT_EQ(client.get(kNoContext, server.url())->body(), wanted);
        EXPECT_EQ(server.connections(), 1);
      };
      for (const bool byte_by_byte : {false, true}) {
        ScriptedServer length(answering(with_length(coding, body), byte_by_byte));
        expect(length, text);
        ScriptedServer chunks(answering(in_chunks(coding, body, 100), byte_by_byte));
        expect(chunks, text);
        ScriptedServer of_nothing(answering(in_chunks(coding, nothing, 1), byte_by_byte));
        expect(of_nothing, empty);
      }
      ScriptedServer of_zero_bytes(answering(in_chunks(coding, "", 1)));
      expect(of_zero_bytes, empty);
      ScriptedServer closing("HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + "\r\n\r\n" + body);
      Client client;
      EXPECT_EQ(client.get(kNoContext, closing.url())->body(), text);
    }
  });
}

// The end of the coded body has been received long before: a decoder takes more than it gives.
TEST_P(ClientDecompressTest, TrailersComeBehindTheLastDecodedByte) {
  run_with(GetParam(), [] {
    for (const std::string& coding : codings()) {
      ScriptedServer server(answering(in_chunks(coding, encoded(coding, words(5000)), 5000, "X-Sum: 7\r\n")));
      Client client;
      Result<ClientResponse> res = client.get(kNoContext, server.url());
      ASSERT_TRUE(res) << res.error().message();
      std::array<std::byte, 10> piece;
      for (std::size_t got = 0; got < 5000;) {
        const Result<std::size_t> n = res->read(piece);
        ASSERT_TRUE(n && *n > 0);
        got += *n;
        ASSERT_EQ(res->trailers().find("X-Sum"), std::nullopt) << coding << got;
      }
      EXPECT_EQ(res->body(), "");
      EXPECT_EQ(res->trailers().find("X-Sum"), "7");
    }
  });
}

// What the server has flushed can be read before it says more.
TEST_P(ClientDecompressTest, AStreamIsReadPieceByPiece) {
  run_with(GetParam(), [] {
    for (const std::string& coding : codings()) {
      Chan<bool> read(1);
      TestServer server(compress({.codings = {coding}})([&](Request&, ResponseWriter& res) {
        res.set_header("Content-Type", "text/plain");
        for (int i = 0; i < 3; ++i) {
          (void)res.write(words(2000));
          (void)res.flush();
          (void)read.recv();
        }
      }));
      Client client;
      Result<ClientResponse> res = client.get(kNoContext, url_of(server));
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_TRUE(res->decompressed());
      for (int i = 0; i < 3; ++i) {
        std::string text(2000, '\0');
        for (std::size_t got = 0; got < text.size();) {
          const auto n = res->read(std::span(text).subspan(got));
          ASSERT_TRUE(n && *n > 0);
          got += *n;
        }
        EXPECT_EQ(text, words(2000));
        read.send(true);
      }
      EXPECT_EQ(res->body(), "");
    }
  });
}

TEST_P(ClientDecompressTest, WhatTheCallerAsksForHimselfStaysAsItIs) {
  run_with(GetParam(), [] {
    AskedFor heard;
    const std::string body = encoded("gzip", "text"), answer = with_length("gzip", body);
    ScriptedServer server([&](net::Conn& conn, int) {
      for (std::string asked; !(asked = ScriptedServer::read_request(conn)).empty();) {
        heard.add(asked);
        (void)conn.write_all(asked.starts_with("HEAD") ? answer.substr(0, answer.find("\r\n\r\n") + 4)
                                                       : answer);
      }
    });
    const auto expect_raw = [&](Client& client, ClientRequest request, std::string_view offer) {
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      const bool head = request.method() == Method::kHead;
      EXPECT_FALSE(res->decompressed());
      EXPECT_EQ(res->header("Content-Encoding"), "gzip");
      EXPECT_EQ(res->header("Content-Length"), std::to_string(body.size()));
      EXPECT_EQ(res->content_length(), head ? 0 : body.size());
      EXPECT_EQ(res->body(), head ? "" : body);
      const std::string asked = heard.take().at(0);
      const std::size_t at = asked.find("Accept-Encoding");
      EXPECT_EQ(at == std::string::npos ? "" : asked.substr(at, asked.find("\r\n", at) - at), offer);
    };
    Client client, never({.decompress = false});
    EXPECT_EQ(client.get(kNoContext, server.url())->body(), "text");
    const std::string offer = heard.take().at(0);
    EXPECT_TRUE(offer.contains("\r\nAccept-Encoding: " + std::string(known_codings()) + "\r\n")) << offer;
    expect_raw(never, ClientRequest(Method::kGet, server.url()), "");
    expect_raw(client, ClientRequest(Method::kHead, server.url()), "");
    for (const char* coding : {"gzip", "identity", "br;q=0.5, *"}) {
      ClientRequest request(Method::kGet, server.url());
      request.set_header("accept-encoding", coding);
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->body(), body) << coding;
      const std::string asked = heard.take().at(0);
      EXPECT_TRUE(asked.contains("accept-encoding: " + std::string(coding) + "\r\n"));
      EXPECT_FALSE(asked.contains("Accept-Encoding"));
    }
    ClientRequest part(Method::kGet, server.url());
    part.set_header("Range", "bytes=0-99");
    expect_raw(client, std::move(part), "");
  });
}

TEST_P(ClientDecompressTest, OtherCodingsStayAsTheyAre) {
  run_with(GetParam(), [] {
    for (const char* coding :
         {"identity", "deflate", "x-special", "", " ", "gzipped", "gzip;q=1", "\"gzip\""}) {
      ScriptedServer server(answering(with_length(coding, "as it is")));
      Client client;
      Result<ClientResponse> res = client.get(kNoContext, server.url());
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_FALSE(res->decompressed()) << coding;
      EXPECT_EQ(res->content_length(), 8u);
      EXPECT_EQ(res->body(), "as it is") << coding;
    }
    for (const char* status : {"204 No Content", "304 Not Modified"}) {
      ScriptedServer server(
          answering("HTTP/1.1 " + std::string(status) + "\r\nContent-Encoding: gzip\r\n\r\n"));
      Client client;
      for (int i = 0; i < 2; ++i) {
        Result<ClientResponse> res = client.get(kNoContext, server.url());
        ASSERT_TRUE(res) << res.error().message();
        EXPECT_FALSE(res->decompressed());
        EXPECT_EQ(res->header("Content-Encoding"), "gzip");
        EXPECT_EQ(res->body(), "");
      }
      EXPECT_EQ(server.connections(), 1);
    }
  });
}

TEST_P(ClientDecompressTest, ABodyCodedTwiceIsRefused) {
  run_with(GetParam(), [] {
    Client client;
    const std::string twice = encoded("gzip", encoded("gzip", "text"));
    for (const char* fields :
         {"gzip, gzip", "gzip,x-gzip", "identity, gzip", "gzip\r\nContent-Encoding: gzip", "deflate, gzip"}) {
      ScriptedServer server(answering(with_length(fields, twice)));
      const Error error = broken(client.get(kNoContext, server.url()));
      EXPECT_TRUE(error.is(Errc::kBadMessage)) << fields << error.message();
      EXPECT_TRUE(error.message().contains("coded more than once")) << error.message();
    }
    for (int i = 0; i < 2'000 && client.stats().open > 0; ++i) sleep_for(1ms);
    EXPECT_EQ(client.stats().open, 0u);
  });
}

TEST_P(ClientDecompressTest, BrokenBodiesAreErrors) {
  run_with(GetParam(), [] {
    Client client;
    const auto expect = [&](const std::string& answer, Errc code, std::string_view why) {
      ScriptedServer server(answer);
      const Error error = broken(client.get(kNoContext, server.url()));
      EXPECT_TRUE(error.is(code)) << why << ": " << error.message();
      EXPECT_TRUE(error.message().contains(why)) << why << ": " << error.message();
    };
    for (const std::string& coding : codings()) {
      const std::string whole = encoded(coding, words(5000));
      for (const std::size_t size : {std::size_t{1}, std::size_t{9}, whole.size() / 2, whole.size() - 1}) {
        const std::string part = whole.substr(0, size);
        expect(with_length(coding, part), Errc::kBadMessage, "truncated");
        expect(in_chunks(coding, part, 7), Errc::kBadMessage, "truncated");
        const std::string cut = with_length(coding, whole);
        expect(cut.substr(0, cut.size() - whole.size() + size), Errc::kEndOfStream, "within the body");
      }
      for (const char* behind : {"x", "behind", "\r\n"})
        expect(with_length(coding, whole + behind), Errc::kBadMessage, "compressed body");
      expect(with_length(coding, "plain text"), Errc::kBadMessage, "compressed body");
      std::string changed = whole;
      for (std::size_t i = whole.size() / 2; i < whole.size(); ++i)
        changed[i] = static_cast<char>(~changed[i]);
      expect(with_length(coding, changed), Errc::kBadMessage, "compressed body");
    }
  });
}

TEST_P(ClientDecompressTest, SeveralStreamsInARowAreOneBody) {
  run_with(GetParam(), [] {
    for (const std::string& coding : codings()) {
      if (coding == "br") continue;  // RFC 7932 knows one stream only
      ScriptedServer server(answering(with_length(coding, encoded(coding, "one ") + encoded(coding, "two"))));
      Client client;
      EXPECT_EQ(client.get(kNoContext, server.url())->body(), "one two") << coding;
    }
  });
}

TEST_P(ClientDecompressTest, BombsEndWhereTheLimitsAre) {
  run_with(GetParam(), [] {
    for (const std::string& coding : codings()) {
      ScriptedServer bomb(answering(with_length(coding, encoded(coding, std::string(16 << 20, '\0')))));
      ScriptedServer text(answering(with_length(coding, encoded(coding, words(100'000)))));
      Client client({.body_bytes_max = 1 << 30}), counts({.body_bytes_max = 100'000}),
          believes({.body_bytes_max = 1 << 30, .decompress_ratio_max = 1'000'000});
      const Error ratio = broken(client.get(kNoContext, bomb.url()));
      EXPECT_TRUE(ratio.is(Errc::kBadMessage)) << coding << ratio.message();
      EXPECT_TRUE(ratio.message().contains("decompressed body too large")) << ratio.message();
      Result<ClientResponse> res = counts.get(kNoContext, bomb.url());
      EXPECT_TRUE(res->body().error().message().contains("larger than 100000 bytes"));
      EXPECT_EQ(believes.get(kNoContext, bomb.url())->body()->size(), std::size_t{16 << 20}) << coding;
      EXPECT_TRUE(counts.get(kNoContext, text.url())->body());
      EXPECT_FALSE(counts.get(kNoContext, text.url())->body(99'999));
    }
    EXPECT_THROW(Client({.decompress_ratio_max = 0}), std::invalid_argument);
  });
}

TEST_P(ClientDecompressTest, WhatNobodyReadsIsNotDecoded) {
  run_with(GetParam(), [] {
    // Malformed in its first chunk, which would end the connection.
    std::string answer = in_chunks("gzip", "no gzip at all", 5);
    answer.replace(answer.find("200 OK"), 6, "302 Found\r\nLocation: /next");
    ScriptedServer server([&](net::Conn& conn, int) {
      for (std::string asked; !(asked = ScriptedServer::read_request(conn)).empty();)
        (void)conn.write_all(asked.starts_with("GET /next ") ? with_length("gzip", encoded("gzip", "here"))
                                                             : answer);
    });
    Client client;
    EXPECT_EQ(client.get(kNoContext, server.url())->body(), "here");
    EXPECT_EQ(server.connections(), 1);
    Client stays({.redirects_max = 0});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(stays.get(kNoContext, server.url())->status(),
                302);  // dropped unread, with all its bytes here
    }
    for (int i = 0; i < 2'000 && stays.stats().open != stays.stats().idle; ++i) sleep_for(1ms);
    EXPECT_EQ(stays.stats().open, stays.stats().idle);
  });
}

TEST_P(ClientDecompressTest, AReverseProxyPassesBytesAsTheyAre) {
  run_with(GetParam(), [] {
    AskedFor heard;
    const std::string body = encoded("gzip", words(5000));
    ScriptedServer upstream([&](net::Conn& conn, int) {
      for (std::string asked; !(asked = ScriptedServer::read_request(conn)).empty();) {
        heard.add(asked);
        (void)conn.write_all(with_length("gzip", body));
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}, .client = {.decompress = true}}));
    const Response plain = fetch(proxy.address(), get("/"));
    const std::string unasked = heard.take().at(0);
    EXPECT_FALSE(unasked.contains("Accept-Encoding")) << unasked;
    EXPECT_EQ(plain.header("content-encoding"), "gzip");
    EXPECT_EQ(plain.header("content-length"), std::to_string(body.size()));
    EXPECT_TRUE(plain.body == body);
    const Response wants =
        fetch(proxy.address(), "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: zstd;q=0.3\r\n\r\n");
    const std::string asked = heard.take().at(0);
    EXPECT_TRUE(asked.contains("\r\nAccept-Encoding: zstd;q=0.3\r\n")) << asked;
    EXPECT_TRUE(wants.body == body);
    Client client;
    EXPECT_EQ(client.get(kNoContext, url_of(proxy))->body(), words(5000));
  });
}

}  // namespace
}  // namespace tuza::http::testing
