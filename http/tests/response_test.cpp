// The bytes of a response on the wire, whatever its handler does.
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/goroutine.h>

#include <array>
#include <cctype>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ResponseTest : public WithProcs {};
TUZA_WITH_PROCS(ResponseTest);

TEST_P(ResponseTest, AContentTypeCannotSplitIt) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("POST /{$}", [](Request& req, ResponseWriter& res) {
      const Result<std::string_view> type = req.body();
      ASSERT_TRUE(type);
      EXPECT_THROW(res.send(*type, "ok"), std::invalid_argument) << *type;
      res.send("a\ttab, \x80 and all printable bytes pass", "fine");
    });
    TestServer server(std::move(router));
    // At each position within and around eight bytes.
    for (std::size_t before = 0; before < 20; ++before) {
      for (const char c : {'\r', '\n', '\0', '\x1f', '\x7f'}) {
        std::string type(before, 'a');
        if (before > 10) type[3] = '\t';
        const Response r = fetch(server.address(), post("/", type + c + "Set-Cookie: stolen=1"));
        EXPECT_EQ(r.body, "fine");
        EXPECT_EQ(r.header("content-type"), "a\ttab, \x80 and all printable bytes pass");
        EXPECT_FALSE(r.has("set-cookie"));
      }
    }
  });
}

TEST_P(ResponseTest, StatusesWithoutABodyHaveNoneHoweverTheyAreSent) {
  run_with(GetParam(), [] {
    Router router;
    const auto status = [](const Request& req) {
      return std::stoi(std::string(req.query_value("status").value()));
    };
    router.handle("GET /nothing", [=](Request& req, ResponseWriter& res) { res.status(status(req)); });
    router.handle("GET /flushed", [=](Request& req, ResponseWriter& res) {
      res.status(status(req));
      (void)res.write("lost");
      (void)res.flush();
      (void)res.write("lost, too");
    });
    router.handle("GET /sent", [=](Request& req, ResponseWriter& res) {
      res.status(status(req));
      res.text("lost");
    });
    router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("next"); });
    TestServer server(std::move(router));
    for (const int code : {204, 205, 304}) {
      for (const char* path : {"/nothing", "/flushed", "/sent"}) {
        RawClient client(server.address());
        client.send(get(std::string(path) + "?status=" + std::to_string(code)) + get("/"));
        const std::vector<Response> all = client.read_responses(2);
        ASSERT_EQ(all.size(), 2u) << code << path;
        EXPECT_EQ(all[0].status, code);
        EXPECT_EQ(all[0].body, "");
        EXPECT_FALSE(all[0].has("transfer-encoding")) << code << path;
        EXPECT_EQ(all[0].header("content-length"), code == 205 ? "0" : "") << code << path;
        EXPECT_EQ(all[1].body, "next");
      }
      // A response without a body ends by itself, in HTTP/1.0 as well.
      RawClient old(server.address());
      old.send("GET /flushed?status=" + std::to_string(code) +
               " HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
      EXPECT_EQ(old.read_responses(2).size(), 2u) << code;
    }
  });
}

TEST_P(ResponseTest, ThereIsNo100ContinueInItOrBehindIt) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("POST /flushed", [](Request& req, ResponseWriter& res) {
      (void)res.write("begun ");
      (void)res.flush();
      if (const auto body = req.body()) (void)res.write(*body);
    });
    router.handle("POST /sent", [](Request& req, ResponseWriter& res) {
      res.text("whole");
      (void)req.body();
    });
    TestServer server(std::move(router));
    for (const auto& [path, body] : {std::pair{"/flushed", "begun hello"}, {"/sent", "whole"}}) {
      RawClient client(server.address());
      client.send("POST " + std::string(path) +
                  " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
      client.read_until([&] { return client.received().find("\r\n\r\n") != std::string::npos; });
      client.send("hello");
      client.read_until_closed();
      const std::vector<Response> all = parse_responses(client.received(), true);
      ASSERT_EQ(all.size(), 1u) << client.received();
      EXPECT_EQ(all[0].body, body);
      EXPECT_EQ(client.received().find("100 Continue"), std::string::npos) << client.received();
    }
  });
}

TEST_P(ResponseTest, AClientThatDoesNotWaitFor100ContinueKeepsItsConnection) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    RawClient client(server.address());
    client.send(post("/nowhere", "hello", "Expect: 100-continue\r\n") + get("/"));
    const std::vector<Response> all = client.read_responses(2);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].status, 404);
    EXPECT_EQ(all[1].body, "Hello, World!");
  });
}

TEST_P(ResponseTest, AnErrorAfterCloseStillCloses) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /{$}", [](Request&, ResponseWriter& res) {
      res.set_header("X-Half", "done");
      res.close();
      res.error(403);
    });
    TestServer server(std::move(router));
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until_closed(2s);
    EXPECT_TRUE(client.closed());
    const std::vector<Response> all = parse_responses(client.received(), true);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].status, 403);
    EXPECT_EQ(all[0].header("connection"), "close");
    EXPECT_EQ(all[0].header("x-half"), "done");
  });
}

TEST_P(ResponseTest, AnErrorKeepsTheFieldsThatDoNotDescribeTheDiscardedBody) {
  run_with(GetParam(), [] {
    constexpr std::array kKept{"WWW-Authenticate", "Set-Cookie", "Content-Security-Policy", "Vary", "Date",
                               "Server",           "Allow"};
    constexpr std::array kDropped{"Content-Encoding",
                                  "content-language",
                                  "CONTENT-LOCATION",
                                  "Content-Range",
                                  "Content-Disposition",
                                  "Content-Digest",
                                  "Repr-Digest",
                                  "Digest",
                                  "Content-MD5",
                                  "Last-Modified",
                                  "Cache-Control",
                                  "CDN-Cache-Control",
                                  "Expires",
                                  "Surrogate-Control",
                                  "X-a-Cache-Control",
                                  "ETag"};
    Router router;
    router.handle("GET /{$}", [=](Request&, ResponseWriter& res) {
      for (const char* name : kDropped) res.set_header(name, "a: b, c");
      for (const char* name : kKept) res.set_header(name, std::string("of ") + name);
      res.set_header("Content-Type", "image/png");
      for (const char* name : kDropped) res.add_header(name, "");
      res.set_header("Content-Length", "100000");
      (void)res.write("discarded");
      res.error(401, "who are you?\n");
    });
    router.handle("GET /no-store", [](Request&, ResponseWriter& res) {
      res.set_header("Cache-Control", "max-age=9");
      res.add_header("Cache-Control", "private, No-Store");
      res.add_header("CDN-Cache-Control", "no-store");
      res.error(410);
    });
    router.handle("GET /no-cache", [](Request&, ResponseWriter& res) {
      res.set_header("Cache-Control", "max-age=9, no-cache=\"Set-Cookie, no-cache\"");
      res.add_header("Cache-Control", "no-cache");
      res.add_header("CDN-Cache-Control", "max-age=9, x-no-store");
      res.error(404);
    });
    TestServer server(std::move(router));
    const Response r = fetch(server.address(), get("/"));
    EXPECT_EQ(r.status, 401);
    EXPECT_EQ(r.body, "who are you?\n");
    EXPECT_EQ(r.header("content-type"), "text/plain; charset=utf-8");
    EXPECT_EQ(r.header("content-length"), "13");
    std::size_t kept = 2;  // Content-Type, Content-Length
    for (const char* name : kKept) {
      std::string lower(name);
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      EXPECT_EQ(r.header(lower), std::string("of ") + name);
      ++kept;
    }
    EXPECT_EQ(r.headers.size(), kept) << "a field of the discarded body, or a second Date or Server";
    const Response gone = fetch(server.address(), get("/no-store"));
    EXPECT_EQ(gone.header("cache-control"), "private, No-Store");
    EXPECT_EQ(gone.headers.count("cache-control"), 1u);
    EXPECT_EQ(gone.header("cdn-cache-control"), "no-store");
    const Response none = fetch(server.address(), get("/no-cache"));
    EXPECT_EQ(none.header("cache-control"), "no-cache") << "or a cache might keep it for a time of its own";
    EXPECT_EQ(none.headers.count("cache-control"), 1u);
    EXPECT_FALSE(none.has("cdn-cache-control"));
  });
}

// The end of the connection delimits the body, so the end of a truncated body must not look like a regular
// end. With a length, or in chunks, the client sees what is missing.
TEST_P(ResponseTest, WhatEndsWithTheConnectionAndIsCutOffHasNoEnd) {
  net::testing::Authority authority;
  const net::TlsCertificate site = authority.issue("site");
  run_with(GetParam(), [&] {
    const auto write = [](ResponseWriter& res) {
      EXPECT_TRUE(res.write(std::string(64 << 10, 'x')));
      EXPECT_TRUE(res.flush());
    };
    const auto router = [&] {
      Router all;
      all.handle("GET /whole", [&](Request&, ResponseWriter& res) { write(res); });
      all.handle("GET /throws", [&](Request&, ResponseWriter& res) {
        write(res);
        throw std::runtime_error("half of it");
      });
      all.handle("GET /exits", [&](Request&, ResponseWriter& res) {
        write(res);
        goexit();
      });
      return all;
    };
    const auto tls = net::TlsServer::load({.certificates = {site}}).value();
    const auto client =
        net::TlsClient::load({.ca_file = authority.file(), .server_name = "localhost"}).value();
    TestServer plain(router()), secure(router(), {}, tls);
    const auto end_of = [](net::Conn conn, const std::string& path) {
      EXPECT_TRUE(conn.write_all("GET " + path + " HTTP/1.0\r\n\r\n"));
      std::array<char, 16384> buffer;
      Result<std::size_t> n = std::size_t{1};
      while (n && *n > 0) n = conn.read(std::span(buffer));
      return n ? "end" : n.error().message();
    };
    for (const std::string path : {"/whole", "/throws", "/exits"}) {
      const bool whole = path == "/whole";
      EXPECT_EQ(end_of(net::dial("tcp", plain.address()).value(), path) == "end", whole) << path;
      EXPECT_EQ(end_of(client->dial("tcp", secure.address()).value(), path) == "end", whole) << path;
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
