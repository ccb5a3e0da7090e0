// Redirects that the client follows: methods, bodies, credentials, ends.
#include <gtest/gtest.h>
#include <tuza/http/tests/client_testing.h>

#include <atomic>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientRedirectTest : public WithProcs {};
TUZA_WITH_PROCS(ClientRedirectTest);

TEST_P(ClientRedirectTest, FollowsRedirectsWithTheMethodThatTheyLeave) {
  run_with(GetParam(), [] {
    Router router = echo_router();
    router.handle("/to/{status}", [](Request& req, ResponseWriter& res) {
      (void)req.body();
      res.set_header("Location", "../echo?x");
      res.status(req.path_value<int>("status"));
      res.send("text/plain", "gone");
    });
    TestServer server(std::move(router));
    Client client;
    const auto ask = [&](Method method, int status) {
      ClientRequest request(method, url_of(server, "/to/" + std::to_string(status)));
      if (method == Method::kPost || method == Method::kPut) request.set_body("body", "a/b");
      Result<ClientResponse> res = client.send(kNoContext, request);
      if (!res) return res.error().message();
      EXPECT_EQ(res->url().target, "/echo?x");
      return std::string(res->header("X-Method").value_or("?")) + " " +
             std::string(res->header("X-Type").value_or("?")) + " " + res->body().value();
    };
    for (const int status : {301, 302, 303}) EXPECT_EQ(ask(Method::kPost, status), "GET - ") << status;
    for (const int status : {307, 308}) EXPECT_EQ(ask(Method::kPost, status), "POST a/b body") << status;
    for (const int status : {301, 302, 307, 308})
      EXPECT_EQ(ask(Method::kPut, status), "PUT a/b body") << status;
    EXPECT_EQ(ask(Method::kPut, 303), "GET - ");
    for (const int status : {301, 302, 303, 307, 308}) {
      EXPECT_EQ(ask(Method::kGet, status), "GET - ") << status;
      EXPECT_EQ(ask(Method::kHead, status), "HEAD - ") << status;
    }
    EXPECT_EQ(client.stats().dialled, 1u) << "the body of a redirect is read";
    ClientRequest streamed(Method::kPost, url_of(server, "/to/307"));
    streamed.set_body_source([](std::span<std::byte>) -> Result<std::size_t> { return 0; });
    EXPECT_EQ(client.send(kNoContext, streamed)->status(), 307) << "its body cannot be sent again";
    Client replaces({.middleware = {[](const Context& ctx, ClientRequest& request, const ClientNext& next) {
                       request.set_body_source(
                           [left = 1](std::span<std::byte> into) mutable -> Result<std::size_t> {
                             into[0] = std::byte{'x'};
                             return left-- > 0 ? 1 : 0;
                           });
                       return next(ctx, request);
                     }}});
    ClientRequest replaced(Method::kPost, url_of(server, "/to/307"));
    replaced.set_body("a text");
    EXPECT_EQ(replaces.send(kNoContext, replaced)->status(), 307) << "nor that of its middleware";
    Client stays({.redirects_max = 0});
    EXPECT_EQ(stays.get(kNoContext, url_of(server, "/to/302"))->status(), 302);
  });
}

TEST_P(ClientRedirectTest, FollowsThoseThatTheProgramAllows) {
  run_with(GetParam(), [] {
    TestServer elsewhere([](Request&, ResponseWriter& res) { res.text("elsewhere"); });
    TestServer server([&](Request& req, ResponseWriter& res) {
      if (req.path() == "/end") return res.text("the end");
      res.redirect(req.path() == "/away" ? url_of(elsewhere) : "/end");
    });
    std::vector<std::string> asked;
    Client client({.allow_redirect = [&](const Url& next, const ClientResponse& answer) {
      asked.push_back(std::to_string(answer.status()) + " " + next.to_string());
      return next.origin() == answer.url().origin();
    }});
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/here"))->body(), "the end");
    Result<ClientResponse> res = client.get(kNoContext, url_of(server, "/away"));
    EXPECT_EQ(res->status(), 302);
    EXPECT_EQ(res->header("Location"), url_of(elsewhere));
    EXPECT_TRUE(res->body()) << "it is there to be read";
    EXPECT_EQ(asked, (std::vector<std::string>{"302 " + url_of(server, "/end"), "302 " + url_of(elsewhere)}));
    TestServer app([](Request&, ResponseWriter& out) {
      out.set_header("Location", "com.app:callback?code=1");
      out.status(302);
    });
    EXPECT_EQ(client.get(kNoContext, url_of(app))->status(), 302) << "the program knows where that leads";
    EXPECT_FALSE(Client().get(kNoContext, url_of(app)));
    Client throws({.allow_redirect = [](const Url&, const ClientResponse&) -> bool { throw 7; }});
    EXPECT_THROW((void)throws.get(kNoContext, url_of(server, "/here")), int);
    EXPECT_EQ(throws.stats().busy(), 0u) << "nothing is left behind";
  });
}

TEST_P(ClientRedirectTest, ErrorsNameTheServerThatHasFailed) {
  run_with(GetParam(), [] {
    ScriptedServer dies("garbage\r\n\r\n");
    TestServer server([&](Request&, ResponseWriter& res) { res.redirect(dies.url("/there"), 303); });
    ClientRequest request(Method::kPost, url_of(server));
    const Error error = Client().send(kNoContext, request.set_body("x")).error();
    EXPECT_TRUE(error.message().starts_with("GET " + dies.url("/there") + ": read response: "))
        << error.message();
  });
}

TEST_P(ClientRedirectTest, FollowsRedirectsNotForEver) {
  run_with(GetParam(), [] {
    std::atomic<int> requests{0};
    TestServer server([&](Request&, ResponseWriter& res) {
      ++requests;
      res.set_header("Location", "/");
      res.status(302);
    });
    Client client({.redirects_max = 3});
    const Result<ClientResponse> res = client.get(kNoContext, url_of(server));
    ASSERT_FALSE(res);
    EXPECT_TRUE(res.error().is(Errc::kBadMessage));
    EXPECT_EQ(requests, 4);
  });
}

TEST_P(ClientRedirectTest, ItsBodyHoldsTheNextRequestUpForAMomentOnly) {
  for (const char* length : {"9", "100000000"}) {
    run_with(GetParam(), [&] {
      ScriptedServer server([&](net::Conn& conn, int number) {
        if (ScriptedServer::read_request(conn).empty()) return;
        (void)conn.write_all(number > 0 ? std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                                        : "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: " +
                                              std::string(length) + "\r\n\r\nand");
        wait_for_end(conn);
      });
      Client client({.timeout = 20s});  // sooner than that of a head
      const Result<ClientResponse> res = client.get(kNoContext, server.url());
      EXPECT_TRUE(res) << res.error().message();
    });
  }
}

TEST_P(ClientRedirectTest, TakesNoCredentialsToAnotherOrigin) {
  run_with(GetParam(), [] {
    const auto tell = [](Request& req, ResponseWriter& res) {
      std::string told;
      for (const char* field : {"Authorization", "Cookie", "Proxy-Authorization", "X-Mine"})
        told += std::string(req.header(field).value_or("-")) + " ";
      res.send("text/plain", told);
    };
    TestServer other(tell);
    Router router;
    router.handle("GET /tell", tell);
    router.handle("GET /here", [](Request&, ResponseWriter& res) {
      res.set_header("Location", "/tell");
      res.status(302);
    });
    router.handle("GET /there", [&](Request&, ResponseWriter& res) {
      res.set_header("Location", url_of(other, "/x"));
      res.status(302);
    });
    TestServer server(std::move(router));
    Client client;
    for (const bool away : {false, true}) {
      ClientRequest request(Method::kGet, url_of(server, away ? "/there" : "/here"));
      request.set_header("Authorization", "a")
          .set_header("Cookie", "b")
          .set_header("Proxy-Authorization", "c");
      request.set_header("X-Mine", "d");
      EXPECT_EQ(client.send(kNoContext, request)->body(), away ? "- - - d " : "a b c d ");
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
