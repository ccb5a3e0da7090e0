// The client through proxies: real ones over real sockets, forwarding and tunnelling, and some that break every rule.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/codec/codec.h>
#include <tuza/http/status.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/tests/fake_resolver.h>
#include <tuza/netpoll/tests/tls_testing.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using namespace std::string_literals;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientProxyTest : public WithProcs {};
TUZA_WITH_PROCS(ClientProxyTest);

class ClientProxyTlsTest : public net::testing::TlsTest {};

std::string address_of(const ScriptedServer& server) { return server.url("").substr(7); }

void tunnel(net::Conn& client, std::string_view address, std::string_view opened) {
  Result<net::Conn> origin = net::dial("tcp", address);
  if (!origin || !client.write_all(opened)) return;
  (void)net::relay(kNoContext, client, *origin);
}

// A proxy as simple as one can be: a connection of its own for each request that it forwards, without Proxy-Authorization.
ScriptedServer::Script http_proxy(AskedFor& asked) {
  return [&asked](net::Conn& conn, int) {
    std::string head = ScriptedServer::read_request(conn);
    if (head.empty()) return;
    asked.add(head);
    const std::size_t begin = head.find(' ') + 1;
    const std::string target = head.substr(begin, head.find(' ', begin) - begin);
    if (head.starts_with("CONNECT ")) return tunnel(conn, target, "HTTP/1.1 200 Connected\r\n\r\n");
    const Result<Url> url = Url::parse(target);
    Result<net::Conn> origin = net::dial("tcp", url.value().address());
    if (!origin) return;
    head.replace(begin, target.size(), url->target);
    if (const std::size_t at = head.find("Proxy-Authorization"); at != std::string::npos)
      head.erase(at, head.find("\r\n", at) + 2 - at);
    head.insert(head.find("\r\n") + 2, "Connection: close\r\n");
    if (!origin->write_all(head)) return;
    (void)net::relay(kNoContext, conn, *origin);
  };
}

// SOCKS5 with or without a password.
ScriptedServer::Script socks_proxy(AskedFor& asked, std::string user = "", std::string password = "") {
  return [&asked, user = std::move(user), password = std::move(password)](net::Conn& conn, int) {
    const auto take = [&conn](std::size_t size) {
      std::string bytes(size, '\0');
      if (!conn.read_full(std::as_writable_bytes(std::span(bytes)))) bytes.assign(size, '\0');
      return bytes;
    };
    const auto counted = [&] { return take(static_cast<unsigned char>(take(1)[0])); };
    if (take(1) != "\x05") return;
    const std::string methods = counted();
    const char method = user.empty() ? '\0' : '\2';
    if (!methods.contains(method)) return (void)conn.write_all("\x05\xff");
    (void)conn.write_all("\x05"s + method);
    if (method != '\0') {
      const std::string version = take(1), name = counted(), secret = counted();
      const bool known = version == "\1" && name == user && secret == password;
      (void)conn.write_all(known ? "\1\0"s : "\1\1"s);
      if (!known) return;
    }
    if (take(3) != "\x05\x01\0"s) return;
    const char type = take(1)[0];
    const std::string host = type == 3 ? counted() : "127.0.0.1";
    if (type == 1 && take(4) != "\x7f\0\0\1"s) return;
    const std::string port = take(2);
    const int number = static_cast<unsigned char>(port[0]) * 256 + static_cast<unsigned char>(port[1]);
    asked.add((type == 3 ? "name " : "address ") + host + ":" + std::to_string(number));
    tunnel(conn, "127.0.0.1:" + std::to_string(number), "\x05\0\0\x03\x03xyz\0\0"s);
  };
}

// Answers the fields that it has got, each in a line.
void show_fields(Request& req, ResponseWriter& res) {
  std::string shown = std::string(req.target()) + "\n";
  for (const auto& [name, value] : req.headers()) shown.append(name).append(": ").append(value).append("\n");
  res.send("text/plain", shown);
}

ClientOptions through(std::string proxy) {
  return {.proxy = {.http = proxy, .https = proxy, .loopback = true}, .user_agent = ""};
}

TEST_P(ClientProxyTest, TheTimeToDialIncludesWhatIsLookedUpForSocks) {
  const auto gate = std::make_shared<net::testing::ResolverGate>();
  const net::testing::FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}}});
  run_with(GetParam(), [&] {
    AskedFor asked;
    ScriptedServer proxy(socks_proxy(asked));
    ClientOptions options = through("socks5://" + address_of(proxy));
    options.dial_timeout = 100ms;
    EXPECT_TRUE(Client(options).get(kNoContext, "http://silent.test/").error().timeout());
    gate->open();
  });
}

TEST_P(ClientProxyTest, AnUpgradeGoesThroughATunnel) {
  run_with(GetParam(), [] {
    AskedFor asked;
    TestServer origin([](Request& req, ResponseWriter& res) {
      if (req.target() == "/no") return res.error(403);
      (void)websocket::upgrade(req, res);
    });
    ScriptedServer proxy(http_proxy(asked));
    Client client(through("http://user:pw@" + address_of(proxy)));
    EXPECT_TRUE(websocket::dial(kNoContext, client, url_of(origin)));
    const auto heads = asked.take();
    ASSERT_EQ(heads.size(), 1u);
    EXPECT_TRUE(heads[0].starts_with("CONNECT " + origin.address() + " HTTP/1.1\r\n")) << heads[0];
    // A tunnel that is kept takes upgrades only.
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(status_of(websocket::dial(kNoContext, client, url_of(origin, "/no")).error()), 403);
    EXPECT_EQ(asked.take().size(), 1u);
    EXPECT_EQ(client.get(kNoContext, url_of(origin, "/no"))->status(), 403);
    EXPECT_TRUE(asked.take().at(0).starts_with("GET http://"));
  });
}

TEST_P(ClientProxyTest, AnHttpProxyForwardsPlainRequests) {
  run_with(GetParam(), [] {
    AskedFor asked;
    TestServer origin(show_fields);
    ScriptedServer proxy(http_proxy(asked));
    Client client(through("http://us%65r:pw@" + address_of(proxy)));
    ClientRequest request(Method::kGet, url_of(origin, "/x?y"));
    request.set_header("Proxy-Authorization", "Basic mine").set_header("X-Mine", "1");
    Result<ClientResponse> res = client.send(kNoContext, request);
    ASSERT_TRUE(res) << res.error().message();
    EXPECT_EQ(res->body(), "/x?y\nConnection: close\nHost: " + origin.address() +
                               "\nAccept-Encoding: " + std::string(known_codings()) + "\nX-Mine: 1\n");
    EXPECT_EQ(asked.take(),
              std::vector{"GET " + url_of(origin, "/x?y") + " HTTP/1.1\r\nHost: " + origin.address() +
                          "\r\nProxy-Authorization: Basic dXNlcjpwdw==\r\n" +
                          "Accept-Encoding: " + std::string(known_codings()) + "\r\nX-Mine: 1\r\n\r\n"});
    // Without credentials nothing is said of them; and those whom the rules except are asked directly.
    Client anonymous(through(address_of(proxy)));
    EXPECT_EQ(anonymous.get(kNoContext, url_of(origin))->status(), 200);
    const auto plain = asked.take();
    ASSERT_EQ(plain.size(), 1u);
    EXPECT_FALSE(plain[0].contains("Proxy-Authorization")) << plain[0];
    ClientOptions excepting = through("http://u:p@" + address_of(proxy));
    excepting.proxy.except = origin.address();
    Client direct(excepting);
    ClientRequest again(Method::kGet, url_of(origin, "/direct"));
    again.set_header("proxy-authorization", "Basic mine");
    const Result<std::string> body = direct.send(kNoContext, again)->body();
    EXPECT_TRUE(body->starts_with("/direct\n") && !body->contains("roxy-")) << *body;
    EXPECT_TRUE(asked.take().empty());
  });
}

TEST_P(ClientProxyTest, ForwardedRequestsKeepTheirConnectionsByOrigin) {
  run_with(GetParam(), [] {
    AskedFor asked;
    ScriptedServer proxy([&](net::Conn& conn, int) {
      for (std::string head; !(head = ScriptedServer::read_request(conn)).empty();) {
        asked.add(head.substr(0, head.find("\r\n")));
        const bool refuses = head.contains("/refused ");
        (void)conn.write_all(refuses ? "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno"
                                     : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
    Client client(through(address_of(proxy)));
    for (const char* url : {"http://one.example/a", "http://one.example/b", "http://two.example:81/c"})
      EXPECT_EQ(client.get(kNoContext, url)->body(), "ok");
    EXPECT_EQ(proxy.connections(), 2);
    EXPECT_EQ(client.get(kNoContext, "http://one.example/refused")->status(), 407);
    EXPECT_EQ(
        asked.take(),
        (std::vector{"GET http://one.example/a HTTP/1.1"s, "GET http://one.example/b HTTP/1.1"s,
                     "GET http://two.example:81/c HTTP/1.1"s, "GET http://one.example/refused HTTP/1.1"s}));
  });
}

TEST_P(ClientProxyTest, SocksTunnelsPlainRequests) {
  run_with(GetParam(), [] {
    AskedFor asked;
    TestServer origin(show_fields);
    ScriptedServer open(socks_proxy(asked)), closed(socks_proxy(asked, "user", "pass:word"));
    const std::string port = origin.address().substr(origin.address().find(':'));
    const auto expect = [&](const std::string& proxy, const std::string& host, const std::string& wanted) {
      Client client(through(proxy));
      for (int i = 0; i < 2; ++i) {
        ClientRequest request(Method::kGet, "http://" + host + port + "/x");
        request.set_header("Proxy-Authorization", "Basic mine");
        Result<ClientResponse> res = client.send(kNoContext, request);
        ASSERT_TRUE(res) << proxy << ": " << res.error().message();
        const Result<std::string> body = res->body();
        EXPECT_TRUE(body->starts_with("/x\nHost: " + host + port) && !body->contains("Proxy")) << *body;
      }
      EXPECT_EQ(asked.take(), std::vector{wanted + port}) << proxy << host;
    };
    expect("socks5://" + address_of(open), "localhost", "address 127.0.0.1");
    expect("socks5h://" + address_of(open), "localhost", "name localhost");
    expect("socks5h://" + address_of(open), "nowhere.example", "name nowhere.example");
    expect("socks5h://" + address_of(open), "127.0.0.1", "address 127.0.0.1");
    expect("socks5://u:p@" + address_of(open), "127.0.0.1", "address 127.0.0.1");
    expect("socks5h://user:pass%3Aword@" + address_of(closed), "localhost", "name localhost");
    const auto denied = [&](const std::string& proxy, std::string_view why) {
      const Result<ClientResponse> res = Client(through(proxy)).get(kNoContext, "http://127.0.0.1" + port);
      ASSERT_FALSE(res) << proxy;
      EXPECT_TRUE(res.error().is(std::errc::permission_denied)) << res.error().message();
      EXPECT_TRUE(
          res.error().message().ends_with("proxy " + address_of(closed) + ": socks5: " + std::string(why)))
          << res.error().message();
    };
    denied("socks5://" + address_of(closed), "it asks for credentials");
    denied("socks5://user:wrong@" + address_of(closed), "it refuses the credentials");
    denied("socks5://wrong:pass%3Aword@" + address_of(closed), "it refuses the credentials");
    denied("socks5://user@" + address_of(closed), "it refuses the credentials");
    const std::string long_host = std::string(252, 'a') + ".org";
    const Result<ClientResponse> res =
        Client(through("socks5h://" + address_of(open))).get(kNoContext, "http://" + long_host);
    EXPECT_TRUE(res.error().is(Errc::kBadAddress)) << res.error().message();
  });
}

TEST_F(ClientProxyTlsTest, TunnelsLeadToTheServerThatIsVerified) {
  const auto tls = net::TlsServer::load(server_options()).value();
  run_with(2, [&] {
    AskedFor asked;
    TestServer origin(show_fields, {}, tls);
    ScriptedServer http(http_proxy(asked)), socks(socks_proxy(asked, "u", "p"));
    const std::string port = origin.address().substr(origin.address().find(':'));
    for (const bool by_http : {true, false}) {
      ClientOptions options =
          through(by_http ? "http://u:p@" + address_of(http) : "socks5h://u:p@" + address_of(socks));
      options.tls.ca_file = authority_.file();
      Client client(options);
      for (int i = 0; i < 2; ++i) {
        ClientRequest request(Method::kGet, "https://localhost" + port + "/secret");
        request.set_header("Proxy-Authorization", "Basic mine");
        Result<ClientResponse> res = client.send(kNoContext, request);
        ASSERT_TRUE(res) << res.error().message();
        const Result<std::string> body = res->body();
        EXPECT_TRUE(body->starts_with("/secret\nHost: localhost" + port) && !body->contains("Proxy"))
            << *body;
      }
      const std::string target = "localhost" + port;
      EXPECT_EQ(asked.take(), std::vector{by_http ? "CONNECT " + target + " HTTP/1.1\r\nHost: " + target +
                                                        "\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
                                                  : "name " + target});
      EXPECT_EQ(client.stats().idle, 1u) << "kept, and used for both";
    }
    // The certificate is checked against the name in the URL, whichever proxy leads there.
    ClientOptions options = through("socks5h://u:p@" + address_of(socks));
    options.tls.ca_file = authority_.file();
    const Result<ClientResponse> wrong = Client(options).get(kNoContext, "https://example.org" + port);
    ASSERT_FALSE(wrong);
    EXPECT_TRUE(net::is_tls_error(wrong.error())) << wrong.error().message();
  });
}

TEST_F(ClientProxyTlsTest, ARedirectMayLeadFromAForwardedRequestIntoATunnel) {
  const auto tls = net::TlsServer::load(server_options()).value();
  run_with(2, [&] {
    AskedFor asked;
    TestServer secure(show_fields, {}, tls);
    const std::string there =
        "https://localhost" + secure.address().substr(secure.address().find(':')) + "/to";
    TestServer plain([&](Request&, ResponseWriter& res) {
      res.set_header("Location", there);
      res.status(302);
    });
    ScriptedServer proxy(http_proxy(asked));
    ClientOptions options = through("http://u:p@" + address_of(proxy));
    options.tls.ca_file = authority_.file();
    Client client(options);
    Result<ClientResponse> res = client.get(kNoContext, url_of(plain));
    ASSERT_TRUE(res) << res.error().message();
    EXPECT_EQ(res->url().to_string(), there);
    const Result<std::string> body = res->body();
    EXPECT_TRUE(body->starts_with("/to\n") && !body->contains("Proxy")) << *body;
    const auto heads = asked.take();
    ASSERT_EQ(heads.size(), 2u);
    EXPECT_TRUE(heads[0].starts_with("GET http://") && heads[1].starts_with("CONNECT localhost:"));
  });
}

// -- Proxies that refuse, or are none

struct BadAnswer {
  std::string bytes;
  std::error_code code;
  std::string_view why;
};

// Says `bytes` at once, ends its side, and waits for the end of the other.
ScriptedServer::Script sending(std::string bytes) {
  return [bytes = std::move(bytes)](net::Conn& conn, int) {
    if (!conn.write_all(bytes)) return;
    (void)conn.close_write();
    std::array<char, 512> scrap;
    while (conn.read(std::span(scrap)).value_or(0) > 0) {
    }
  };
}

void expect_refused(const std::string& scheme, const std::string& url,
                    const std::vector<BadAnswer>& answers) {
  for (const auto& [bytes, code, why] : answers) {
    ScriptedServer proxy(sending(bytes));
    Client client(through(scheme + address_of(proxy)));
    const Result<ClientResponse> res = client.get(kNoContext, url);
    const std::string shown = ::testing::PrintToString(bytes.substr(0, 100));
    ASSERT_FALSE(res) << shown;
    EXPECT_EQ(res.error().code(), code) << shown << res.error().message();
    EXPECT_TRUE(res.error().message().contains(why)) << shown << res.error().message();
    EXPECT_TRUE(res.error().message().contains("proxy " + address_of(proxy))) << res.error().message();
    EXPECT_EQ(client.stats().open, 0u);
    EXPECT_EQ(proxy.connections(), 1);
  }
}

TEST_P(ClientProxyTest, AnswersToConnectAreTakenAtTheirWordOrRefused) {
  run_with(GetParam(), [] {
    const auto denied = std::make_error_code(std::errc::permission_denied);
    const std::error_code other = Errc::kOther, bad = Errc::kBadMessage, end = Errc::kEndOfStream;
    std::string interim;
    for (int i = 0; i < 5; ++i) interim += "HTTP/1.1 102 Processing\r\n\r\n";
    const std::vector<BadAnswer> answers{
        {"HTTP/1.1 407 x\r\nProxy-Authenticate: Basic\r\n\r\n", denied,
         "connect far.example:443: 407 Proxy Authentication Required: it asks for credentials"},
        {"HTTP/1.1 403 x\r\n\r\n", other, "connect far.example:443: 403 Forbidden"},
        {"HTTP/1.1 502 x\r\nContent-Length: 3\r\n\r\nbad", other, "connect far.example:443: 502 Bad Gateway"},
        {"HTTP/1.0 503\r\n\r\n", other, "503 Service Unavailable"},
        {"HTTP/1.1 504 x\r\n\r\n", other, "504 Gateway Timeout"},
        {"HTTP/1.1 302 x\r\nLocation: http://evil.example\r\n\r\n", other, "302 Found"},
        {"HTTP/1.1 102 x\r\n\r\nHTTP/1.1 500 x\r\n\r\n", other, "500 Internal Server Error"},
        {"HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n", bad, "upgrade"},
        {interim + "HTTP/1.1 200 OK\r\n\r\n", bad, "too many interim responses"},
        {"HTTP/1.1 200 OK\r\n\r\nx", bad, "more than the head"},
        {"HTTP/2 200 OK\r\n\r\n", bad, ""},
        {"HTTP/1.1 2000 OK\r\n\r\n", bad, ""},
        {"SSH-2.0-OpenSSH_9.2\r\n", bad, ""},
        {"\x05\xff", bad, ""},
        {"HTTP/1.1 200 OK\r\n" + std::string(20'000, 'x'), bad, ""},
        {"HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", bad, ""},
        {"HTTP/1.1 " + std::string(20'000, '2'), bad, ""},
        {"", end, "closed before the end"},
        {"HTTP/1.1 200", end, "closed before the end"},
        {"HTTP/1.1 200 OK\r\n", end, "closed before the end"},
    };
    expect_refused("http://", "https://far.example/", answers);
    expect_refused("http://u:p@", "https://far.example/",
                   {{"HTTP/1.1 407 x\r\n\r\n", denied, "it refuses the credentials"}});
  });
}

TEST_P(ClientProxyTest, RepliesOfSocksAreTakenAtTheirWordOrRefused) {
  run_with(GetParam(), [] {
    const std::error_code bad = Errc::kBadMessage, end = Errc::kEndOfStream;
    const auto code = [](std::errc condition) { return std::make_error_code(condition); };
    const auto reply = [](char number) { return "\x05\0\x05"s + number + "\0\x01\0\0\0\0\0\0"s; };
    expect_refused(
        "socks5h://", "http://far.example/",
        {
            {reply(1), code(std::errc::io_error), "socks5: general failure"},
            {reply(2), code(std::errc::permission_denied), "socks5: not allowed by its rules"},
            {reply(3), code(std::errc::network_unreachable), "socks5: network unreachable"},
            {reply(4), code(std::errc::host_unreachable), "socks5: host unreachable"},
            {reply(5), code(std::errc::connection_refused), "socks5: connection refused"},
            {reply(6), code(std::errc::host_unreachable), "socks5: TTL expired"},
            {reply(7), code(std::errc::operation_not_supported), "socks5: command not supported"},
            {reply(8), code(std::errc::address_family_not_supported), "socks5: address type not supported"},
            {reply(9), bad, "unknown reply 9"},
            {reply('\xff'), bad, "unknown reply 255"},
            {"\x05\xff", code(std::errc::permission_denied), "it asks for credentials"},
            {"\x04\0"s, bad, "another version"},
            {"HTTP/1.1 400 Bad Request\r\n\r\n", bad, "another version"},
            {"\x05\x02", bad, "not offered"},
            {"\x05\x01", bad, "not offered"},
            {"\x05\0\x04\0\0\x01"s, bad, "malformed reply"},
            {"\x05\0\x05\0\x01\x01"s, bad, "malformed reply"},
            {"\x05\0\x05\0\0\x02\0\0\0\0\0\0"s, bad, "unknown type of address"},
            {"", end, ""},
            {"\x05", end, ""},
            {"\x05\0"s, end, ""},
            {"\x05\0\x05\0\0"s, end, ""},
            {"\x05\0\x05\0\0\x01\0\0\0\0\0"s, end, ""},
            {"\x05\0\x05\0\0\x04"s + std::string(17, '\0'), end, ""},
            {"\x05\0\x05\0\0\x03"s, end, ""},
            {"\x05\0\x05\0\0\x03\xff"s + std::string(256, 'x'), end, ""},
        });
    expect_refused("socks5h://u:p@", "http://far.example/",
                   {{"\x05\x02\x01\x01"s, code(std::errc::permission_denied), "it refuses the credentials"},
                    {"\x05\x02\x05\0"s, bad, "another version of the password's answer"},
                    {"\x05\xff", code(std::errc::permission_denied), "it takes none of our methods"},
                    {"\x05\x02\x01"s, end, ""}});
    // Every length of the address that nobody needs, with the answer close behind.
    for (const std::string& bound : {"\x01"s + std::string(6, 'x'), "\x04"s + std::string(18, 'x'),
                                     "\x03\0"s + "xx", "\x03\xff"s + std::string(257, 'x')}) {
      ScriptedServer proxy(
          sending("\x05\0\x05\0\0"s + bound + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
      Client client(through("socks5h://" + address_of(proxy)));
      Result<ClientResponse> res = client.get(kNoContext, "http://far.example/");
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->body(), "ok");
    }
  });
}

TEST_P(ClientProxyTest, AnEndlessOrSilentProxyEndsTheCall) {
  run_with(GetParam(), [] {
    ScriptedServer endless([](net::Conn& conn, int) {
      if (!conn.write_all("HTTP/1.1 200 OK\r\n")) return;
      while (conn.write_all("X-Padding: more and more\r\n")) {
      }
    });
    Client client(through(address_of(endless)));
    const Result<ClientResponse> more = client.get(kNoContext, "https://far.example/");
    EXPECT_TRUE(more.error().is(Errc::kBadMessage)) << more.error().message();
    ScriptedServer silent([](net::Conn& conn, int) {
      std::array<char, 512> scrap;
      while (conn.read(std::span(scrap)).value_or(0) > 0) {
      }
    });
    for (const char* scheme : {"http://", "socks5h://", "socks5h://u:p@"}) {
      ClientOptions options = through(scheme + address_of(silent));
      options.dial_timeout = 20ms;
      const Result<ClientResponse> late = Client(options).get(kNoContext, "https://far.example/");
      EXPECT_TRUE(late.error().timeout()) << late.error().message();
    }
    const Result<ClientResponse> none =
        Client(through(closed_url().substr(7))).get(kNoContext, "http://far.example/");
    EXPECT_TRUE(none.error().is(std::errc::connection_refused)) << none.error().message();
    EXPECT_TRUE(none.error().message().starts_with("GET http://far.example/: proxy 127.0.0.1:"));
  });
}

}  // namespace
}  // namespace tuza::http::testing
