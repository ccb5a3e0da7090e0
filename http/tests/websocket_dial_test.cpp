// websocket::dial(): against the server of this library in memory, over a socket and over TLS, and against servers that say
// exactly what they are told to. A server that is not ours: websocket_dial_test.py.
#include <tuza/http/router.h>
#include <tuza/http/status.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/handshake.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <cstdio>
#include <functional>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;
using websocket::DialOptions;
using websocket::Kind;

enum class Carrier : std::uint8_t { kMemory, kSocket, kTls };

class WebSocketDialOverTest : public ::testing::TestWithParam<Carrier> {
 protected:
  // `body` gets a URL "ws://..." or "wss://...".
  void with_server(Handler handler, const std::function<void(Server&, const std::string&)>& body) {
    static net::testing::Authority authority;
    static const net::TlsCertificate site = authority.issue("site");
    run_with(2, [&] {
      ServerSetup setup{.socket = GetParam() != Carrier::kMemory};
      if (GetParam() == Carrier::kTls) {
        setup.tls = net::TlsServer::load({.certificates = {site}}).value();
        setup.client.tls = {.ca_file = authority.file(), .server_name = "localhost"};
      }
      Server server(std::move(handler), std::move(setup));
      const std::string url = server.url("/");
      body(server, "ws" + url.substr(url.find("http") + 4));
    });
  }
};
std::string carrier_name(const ::testing::TestParamInfo<Carrier>& given) {
  return given.param == Carrier::kMemory ? "Memory" : given.param == Carrier::kSocket ? "Socket" : "Tls";
}
INSTANTIATE_TEST_SUITE_P(Over, WebSocketDialOverTest,
                         ::testing::Values(Carrier::kMemory, Carrier::kSocket, Carrier::kTls), carrier_name);

class WebSocketDialTest : public WithProcs {};
TUZA_WITH_PROCS(WebSocketDialTest);

Handler sends_back(websocket::Options options = {}) {
  options.message_bytes_max = 8 << 20;
  return [options = std::move(options)](Request& req, ResponseWriter& res) {
    auto socket = websocket::upgrade(req, res, options);
    if (!socket) return;
    while (auto message = socket->read()) {
      if (!socket->write(*message)) return;
    }
  };
}

std::string text_of(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i * i) + " ";
  text.resize(size);
  return text;
}

void expect_echo(websocket::Connection& socket, Kind kind, const std::string& data) {
  ASSERT_TRUE(socket.write({kind, data}));
  const auto back = socket.read();
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->kind, kind);
  EXPECT_TRUE(back->data == data) << data.size();
}

// All lengths at which a frame, or the way it is masked, changes.
void expect_echoes(websocket::Connection& socket) {
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 7, 125, 126, 1023, 1024, 1025, 16'369, 16'370, 16'371, 16'384,
                                          40'000, 65'535, 65'536, 1'000'003}) {
    expect_echo(socket, Kind::kText, text_of(size));
  }
  expect_echo(socket, Kind::kBinary, {"\x00\xff\x80", 3});
}

TEST_P(WebSocketDialOverTest, MessagesOfAllLengthsComeBack) {
  with_server(sends_back(), [](Server& server, const std::string& url) {
    auto socket = websocket::dial(kNoContext, server.client(), url, {.message_bytes_max = 2 << 20});
    ASSERT_TRUE(socket) << socket.error().message();
    EXPECT_FALSE(socket->compressed());
    EXPECT_EQ(socket->subprotocol(), "");
    expect_echoes(*socket);
    EXPECT_TRUE(socket->close(4000, "done"));
    EXPECT_TRUE(socket->read().error().closed());
    EXPECT_EQ(socket->peer_close()->code, 4000);
    EXPECT_TRUE(socket->write_text("late").error().closed());
  });
}

TEST_P(WebSocketDialOverTest, CompressedToo) {
  const websocket::DeflateOptions ways[] = {
      {.enabled = true, .bytes_min = 1},
      {.enabled = true, .context_takeover = false, .bytes_min = 1},
      {.enabled = true, .window_bits = 9, .level = 9, .bytes_min = 1},
      {.enabled = true, .context_takeover = false, .window_bits = 12, .bytes_min = 200},
  };
  for (const auto& theirs : ways) {
    with_server(sends_back({.deflate = theirs}), [&](Server& server, const std::string& url) {
      for (const auto& ours : ways) {
        auto socket = websocket::dial(kNoContext, server.client(), url,
                                      {.message_bytes_max = 2 << 20, .deflate = ours});
        ASSERT_TRUE(socket) << socket.error().message();
        EXPECT_TRUE(socket->compressed());
        expect_echoes(*socket);
      }
    });
  }
}

TEST_P(WebSocketDialOverTest, OneReadsWhileOthersWrite) {
  with_server(sends_back({.ping_interval = 1ms}), [](Server& server, const std::string& url) {
    auto socket = websocket::dial(kNoContext, server.client(), url, {.ping_interval = 1ms});
    ASSERT_TRUE(socket);
    constexpr int kWriters = 6, kEach = 50;
    WaitGroup writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.go([&socket, w] {
        const std::string text(static_cast<std::size_t>(1 + w * 700), static_cast<char>('a' + w));
        for (int i = 0; i < kEach; ++i) EXPECT_TRUE(socket->write_text(text));
      });
    }
    for (int i = 0; i < kWriters * kEach; ++i) {
      const auto got = socket->read();
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(got->data.size(), 1u + static_cast<std::size_t>(got->data[0] - 'a') * 700);
      EXPECT_EQ(got->data.find_first_not_of(got->data[0]), std::string_view::npos);
    }
    writers.wait();
  });
}

TEST_P(WebSocketDialOverTest, TheEndOfTheServerIsSeen) {
  with_server(sends_back(), [](Server& server, const std::string& url) {
    auto socket = websocket::dial(kNoContext, server.client(), url);
    ASSERT_TRUE(socket);
    WaitGroup ending;
    ending.go([&] { EXPECT_EQ(server.close(), ""); });
    EXPECT_TRUE(socket->read().error().closed());
    EXPECT_EQ(socket->peer_close()->code, 1001);
    ending.wait();
  });
}

TEST_P(WebSocketDialOverTest, TheSubprotocolAndFieldsOfTheHandshake) {
  Chan<std::string> asked(1);
  const auto handler = [&asked](Request& req, ResponseWriter& res) {
    asked.send(std::string(req.header("Authorization").value_or("-")) + " " + std::string(req.host()));
    (void)websocket::upgrade(req, res, {.subprotocols = {"v2", "v1"}, .origins = {"https://app.example"}});
  };
  with_server(handler, [&](Server& server, const std::string& url) {
    DialOptions options{.subprotocols = {"v1", "v2"},
                        .headers = {{"Authorization", "Bearer 1"}, {"Origin", "https://app.example"}}};
    {
      auto socket = websocket::dial(kNoContext, server.client(), url, options);
      ASSERT_TRUE(socket) << socket.error().message();
      EXPECT_EQ(socket->subprotocol(), "v2");
      const std::string host = url.substr(url.find("//") + 2);
      EXPECT_EQ(asked.recv(), "Bearer 1 " + host.substr(0, host.find('/')));
    }
    options.headers = {{"Origin", "https://evil.example"}};
    const auto refused = websocket::dial(kNoContext, server.client(), url, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(status_of(refused.error()), 403);
    EXPECT_EQ(refused.error().message(),
              "websocket dial " + url + ": 403 Forbidden: cross-origin request refused");
  });
}

// -- What a server may not do, and what becomes of the connection.

constexpr std::string_view kUpgraded =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";

std::string accept_for(const std::string& request) {
  constexpr std::string_view kKey = "\r\nSec-WebSocket-Key: ";
  const std::size_t at = request.find(kKey) + kKey.size();
  return "Sec-WebSocket-Accept: " + websocket::accept_of(request.substr(at, request.find("\r\n", at) - at)) +
         "\r\n";
}

// Answers the handshake with the fields, and then with `bytes`; reads until the client has gone, and tells what it read.
ScriptedServer::Script answers(std::string fields, std::string bytes, Chan<std::string>* received = nullptr) {
  return [=](net::Conn& conn, int) {
    const std::string request = ScriptedServer::read_request(conn);
    if (request.empty()) return;
    (void)conn.write_all(std::string(kUpgraded) + accept_for(request) + fields + "\r\n" + bytes);
    std::string got;
    char piece[4096];
    while (const auto n = conn.read(std::span(piece))) {
      if (*n == 0) break;
      got.append(piece, *n);
      // The answer to our close frame, or a close frame; a client waits for the end of the server.
      if (got.contains('\x88')) break;
    }
    if (received != nullptr) received->send(got);
  };
}

TEST_P(WebSocketDialTest, AnAnswerThatIsNoneToTheHandshakeIsRefused) {
  const std::string accepted = "(accept)";  // stands for the right Sec-WebSocket-Accept
  const struct {
    std::string head, fault;  // empty: none
  } cases[] = {
      {std::string(kUpgraded) + accepted, ""},
      {"HTTP/1.1 101 X\r\nconnection: keep-alive, upgrade\r\nUPGRADE: WebSocket\r\n" + accepted, ""},
      {std::string(kUpgraded) + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "another key"},
      {std::string(kUpgraded), "another key"},
      {std::string(kUpgraded) + accepted + accepted, "another key"},
      {"HTTP/1.0 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + accepted, "not asked for"},
      {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + accepted, "not asked for"},
      {"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n" + accepted, "something else"},
      {std::string(kUpgraded) + accepted + "Sec-WebSocket-Protocol: a\r\n", ""},
      {std::string(kUpgraded) + accepted + "Sec-WebSocket-Protocol: c\r\n", "subprotocol"},
      {std::string(kUpgraded) + accepted + "Sec-WebSocket-Protocol: a, b\r\n", "subprotocol"},
      {std::string(kUpgraded) + accepted + "Sec-WebSocket-Extensions: permessage-deflate\r\n", "extension"},
  };
  run_with(GetParam(), [&] {
    Client client;
    for (const auto& c : cases) {
      ScriptedServer server([&c](net::Conn& conn, int) {
        const std::string accept = accept_for(ScriptedServer::read_request(conn));
        std::string head = c.head;
        for (std::size_t at; (at = head.find("(accept)")) != std::string::npos;) head.replace(at, 8, accept);
        (void)conn.write_all(head + "\r\n" + std::string("\x88\x00", 2));
      });
      auto socket = websocket::dial(kNoContext, client, server.url(), {.subprotocols = {"a", "b"}});
      EXPECT_EQ(socket.has_value(), c.fault.empty()) << c.head;
      if (socket) continue;
      EXPECT_TRUE(socket.error().is(Errc::kBadMessage));
      EXPECT_TRUE(socket.error().message().contains(c.fault)) << socket.error().message();
    }
    EXPECT_EQ(client.stats().open, 0u);
  });
}

TEST_P(WebSocketDialTest, WhatBreaksTheProtocolIsAnsweredWithItsCode) {
  const std::pair<std::string, std::string> cases[] = {
      {frame(1, "a"), "masked frame"},
      {frame(1, "a", {.rsv = 4, .masked = false}), "reserved bits are set"},
      {frame(1, "\xff", {.masked = false}), "text is not UTF-8"},
      {frame(2, std::string(1001, 'x'), {.masked = false}), "message too long"},
  };
  run_with(GetParam(), [&] {
    Client client;
    for (const auto& [bytes, fault] : cases) {
      Chan<std::string> received(1);
      ScriptedServer server(answers("", frame(1, "before", {.masked = false}) + bytes, &received));
      auto socket = websocket::dial(kNoContext, client, server.url(), {.message_bytes_max = 1000});
      ASSERT_TRUE(socket) << socket.error().message();
      EXPECT_EQ(socket->read()->data, "before");
      const auto failed = socket->read();
      ASSERT_FALSE(failed);
      EXPECT_TRUE(failed.error().is(Errc::kBadMessage));
      EXPECT_TRUE(failed.error().message().contains(fault)) << failed.error().message();
      EXPECT_EQ(received.recv()->front(), '\x88');
    }
  });
}

TEST_P(WebSocketDialTest, EachFrameHasAMaskOfItsOwn) {
  run_with(GetParam(), [] {
    constexpr std::size_t kFrames = 40, kFrameBytes = 6;
    Chan<std::string> received(1);
    ScriptedServer server([&](net::Conn& conn, int) {
      const std::string request = ScriptedServer::read_request(conn);
      (void)conn.write_all(std::string(kUpgraded) + accept_for(request) + "\r\n");
      std::string got(kFrames * kFrameBytes, '\0');
      EXPECT_TRUE(conn.read_full(std::as_writable_bytes(std::span(got))));
      received.send(got);
    });
    Client client;
    auto socket = websocket::dial(kNoContext, client, server.url());
    ASSERT_TRUE(socket);
    for (std::size_t i = 0; i < kFrames; ++i) ASSERT_TRUE(socket->write_binary({}));
    const std::string got = *received.recv();
    std::set<std::string> masks;
    for (std::size_t at = 0; at < got.size(); at += kFrameBytes) {
      EXPECT_EQ(got.substr(at, 2), "\x82\x80");
      masks.insert(got.substr(at + 2, 4));
    }
    EXPECT_GE(masks.size(), kFrames - 1);  // two of them are the same once in five million runs
  });
}

TEST_P(WebSocketDialTest, AServerThatDeclinesSaysWhy) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /secret", [](Request&, ResponseWriter& res) { res.error(401); });
    router.handle("GET /full", [](Request&, ResponseWriter& res) { res.error(503, "this room is full\n"); });
    router.handle("GET /page", [](Request&, ResponseWriter& res) { res.html(403, "<p>a page"); });
    router.handle("GET /moved", [](Request&, ResponseWriter& res) { res.redirect("/echo"); });
    router.handle("GET /echo", sends_back());
    TestServer server(std::move(router));
    Client client;
    const auto dial = [&](const std::string& target) {
      return websocket::dial(kNoContext, client, url_of(server, target));
    };
    EXPECT_EQ(status_of(dial("/secret").error()), 401);
    EXPECT_EQ(status_of(dial("/nothing").error()), 404);
    EXPECT_EQ(status_of(errorf("feed: {}", dial("/nothing").error())), 404);
    EXPECT_EQ(status_of(dial("/full").error()), 503);
    const auto ends_with = [&](const std::string& target, std::string_view words) {
      return dial(target).error().message().ends_with(words);
    };
    EXPECT_TRUE(ends_with("/full", " Service Unavailable: this room is full"));
    EXPECT_TRUE(ends_with("/secret", " Unauthorized")) << "its text says no more";
    EXPECT_TRUE(ends_with("/page", " Forbidden"));
    auto redirected = dial("/moved");
    ASSERT_TRUE(redirected) << redirected.error().message();
    expect_echo(*redirected, Kind::kText, "hello");

    const auto refused = websocket::dial(kNoContext, client, closed_url());
    EXPECT_TRUE(refused.error().is(std::errc::connection_refused));
    EXPECT_EQ(status_of(refused.error()), std::nullopt);
    EXPECT_TRUE(websocket::dial(kNoContext, client, "ftp://a/").error().message().contains("neither ws://"));
    for (const char* bad : {"", "ws:", "ftp://a/", "ws://", "ws://a b/"})
      EXPECT_TRUE(websocket::dial(kNoContext, client, bad).error().is(Errc::kBadAddress)) << bad;
  });
}

TEST_P(WebSocketDialTest, TheContextIsOfTheHandshakeOnly) {
  run_with(GetParam(), [] {
    Client client;
    ScriptedServer silent([](net::Conn& conn, int) {
      (void)ScriptedServer::read_request(conn);
      wait_for_end(conn);
    });
    {
      const auto [ctx, cancel] = with_timeout(Context::background(), 20ms);
      EXPECT_TRUE(websocket::dial(ctx, client, silent.url()).error().timeout());
    }
    TestServer server(sends_back());
    auto [ctx, cancel] = with_cancel(Context::background());
    auto socket = websocket::dial(ctx, client, url_of(server));
    ASSERT_TRUE(socket);
    cancel();
    expect_echo(*socket, Kind::kText, "still here");
    EXPECT_TRUE(socket->read(ctx).error().cancelled());
    expect_echo(*socket, Kind::kText, "and here");
  });
}

TEST_P(WebSocketDialTest, OutlivesItsClientAndCountsAsItsConnection) {
  run_with(GetParam(), [] {
    TestServer server(sends_back());
    std::optional<Client> client(std::in_place, ClientOptions{.connections_max = 1});
    auto socket = websocket::dial(kNoContext, *client, url_of(server));
    ASSERT_TRUE(socket);
    EXPECT_EQ(client->stats().open, 1u);
    {
      const auto [ctx, cancel] = with_timeout(Context::background(), 10ms);
      EXPECT_TRUE(client->get(ctx, url_of(server)).error().timeout()) << "there is no other place";
    }
    client.reset();
    expect_echo(*socket, Kind::kText, "orphan");
  });
}

TEST_P(WebSocketDialTest, AServerThatAnswersNoPingIsLeft) {
  run_with(GetParam(), [] {
    Client client;
    ScriptedServer server([](net::Conn& conn, int) {
      const std::string request = ScriptedServer::read_request(conn);
      (void)conn.write_all(std::string(kUpgraded) + accept_for(request) + "\r\n");
      for (std::array<char, 64> piece; conn.read(std::span(piece)).value_or(0) > 0;) {
      }
    });
    auto socket =
        websocket::dial(kNoContext, client, server.url(), {.ping_interval = 1ms, .pong_timeout = 30ms});
    ASSERT_TRUE(socket);
    EXPECT_TRUE(socket->read().error().timeout());
  });
}

TEST_P(WebSocketDialTest, AServerThatReadsNothingStopsTheWriterAndIsLeft) {
  run_with(GetParam(), [] {
    Client client;
    Chan<int> over(1);
    ScriptedServer server([&](net::Conn& conn, int) {
      const std::string request = ScriptedServer::read_request(conn);
      (void)conn.write_all(std::string(kUpgraded) + accept_for(request) + "\r\n");
      (void)over.recv();
    });
    {
      auto socket = websocket::dial(kNoContext, client, server.url(), {.write_timeout = 100ms});
      ASSERT_TRUE(socket);
      const std::string piece(1 << 16, 'x');
      int count = 0;
      while (socket->write_text(piece)) ++count;
      EXPECT_LT(count, 1000) << "64 MB would be no back-pressure";
      EXPECT_TRUE(socket->read().error().timeout());
    }
    over.send(1);
  });
}

// An address as /proc/net/tcp has it.
std::string in_proc(const std::string& address) {
  const net::Endpoint endpoint = net::parse_endpoint(address).value();
  char text[32];
  std::snprintf(text, sizeof text, "0100007F:%04X", static_cast<unsigned>(endpoint.port()));
  return text;
}

TEST_P(WebSocketDialTest, TheServersEndOfTheConnectionWaitsNotTheClients) {
  run_with(GetParam(), [] {
    Chan<std::string> peer(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      peer.send(std::string(req.remote()));
      (void)websocket::upgrade(req, res);
    });
    Client client;
    {
      auto socket = websocket::dial(kNoContext, client, url_of(server));
      ASSERT_TRUE(socket);
    }
    const std::string theirs = in_proc(server.address()) + " " + in_proc(*peer.recv());
    constexpr std::string_view kTimeWait = " 06";
    bool waits = false;
    for (int i = 0; i < 300 && !waits; ++i) {
      if (i > 0) sleep_for(50ms);  // the last acknowledgement may be on its way
      waits = File::open("/proc/net/tcp")->read_all()->contains(theirs + std::string(kTimeWait));
    }
    EXPECT_TRUE(waits);
  });
}

TEST_P(WebSocketDialTest, ARedirectDoesNotTakeTheEncryptionAway) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /plain",
                  [](Request&, ResponseWriter& res) { res.redirect("http://example.org/echo"); });
    router.handle("GET /encrypted",
                  [](Request&, ResponseWriter& res) { res.redirect("https://example.org/echo"); });
    router.handle("GET /ws", [](Request&, ResponseWriter& res) { res.redirect("ws://example.org/echo"); });
    router.handle("GET /wss", [](Request&, ResponseWriter& res) { res.redirect("WSS://example.org/echo"); });
    router.handle("GET /echo", sends_back());
    Server server(std::move(router));
    const auto dial = [&](std::string_view url) { return websocket::dial(kNoContext, server.client(), url); };
    EXPECT_TRUE(dial("ws://example.org/plain"));
    EXPECT_TRUE(dial("ws://example.org/encrypted"));
    EXPECT_TRUE(dial("wss://example.org/encrypted"));
    EXPECT_TRUE(dial("ws://example.org/ws"));
    EXPECT_TRUE(dial("wss://example.org/wss"));
    for (const char* plain : {"wss://example.org/plain", "wss://example.org/ws"})
      EXPECT_TRUE(dial(plain).error().is(Errc::kBadMessage)) << plain;
    EXPECT_FALSE(server.client().get(kNoContext, "http://example.org/ws")) << "no upgrade";
    EXPECT_EQ(server.client().get(kNoContext, "https://example.org/plain")->status(), 426) << "no upgrade";
  });
}

TEST_P(WebSocketDialTest, WrongUsesThrow) {
  run_with(GetParam(), [] {
    Client client;
    const auto dial = [&](const DialOptions& options) {
      return websocket::dial(kNoContext, client, "ws://127.0.0.1:1/", options);
    };
    EXPECT_THROW((void)dial({.subprotocols = {""}}), std::invalid_argument);
    EXPECT_THROW((void)dial({.subprotocols = {"a, b"}}), std::invalid_argument);
    EXPECT_THROW((void)dial({.headers = {{"sec-websocket-key", "x"}}}), std::invalid_argument);
    EXPECT_THROW((void)dial({.headers = {{"Upgrade", "x"}}}), std::invalid_argument);
    EXPECT_THROW((void)dial({.headers = {{"A", "x\r\nB: y"}}}), std::invalid_argument);
    EXPECT_THROW((void)dial({.deflate = {.window_bits = 8}}), std::invalid_argument);
    EXPECT_THROW((void)dial({.deflate = {.level = 0}}), std::invalid_argument);
  });
}

}  // namespace
}  // namespace tuza::http::testing
