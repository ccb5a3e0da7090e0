// Middleware of the client: what it sees, what it may change, and what is left of that.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/router.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/fake_clock.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientMiddlewareTest : public WithProcs {};
TUZA_WITH_PROCS(ClientMiddlewareTest);

// `/hop` says what it was asked; `/moved` and `/see-other` lead there, `/away` to another host.
Router hop_router() {
  Router router;
  router.handle("/hop", [](Request& req, ResponseWriter& res) {
    const Result<std::string_view> body = req.body();
    if (!body) return;
    res.text(std::string(req.method_name()) + " mark=" + std::string(req.header("X-Mark").value_or("-")) +
             " auth=" + std::string(req.header("Authorization").value_or("-")) +
             " body=" + std::string(*body));
  });
  router.handle("/moved", [](Request&, ResponseWriter& res) { res.redirect("/hop", 307); });
  router.handle("/see-other", [](Request&, ResponseWriter& res) { res.redirect("/hop", 303); });
  router.handle("/away", [](Request&, ResponseWriter& res) { res.redirect("http://other.example/hop"); });
  return router;
}

// Writes down what passes.
ClientMiddleware noting(std::string name, std::vector<std::string>& notes) {
  return
      [name = std::move(name), &notes](const Context& ctx, ClientRequest& request, const ClientNext& next) {
        notes.push_back(name + "> " + std::string(request.url()->target));
        Result<ClientResponse> response = next(ctx, request);
        notes.push_back(name + "< " + (response ? std::to_string(response->status()) : "error"));
        return response;
      };
}

TEST_P(ClientMiddlewareTest, SeesEachHopTheFirstOutermost) {
  run_with(GetParam(), [] {
    TestServer server(hop_router());
    std::vector<std::string> notes;
    Client client({.middleware = {noting("a", notes), noting("b", notes)}});
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/moved"))->status(), 200);
    EXPECT_EQ(notes, (std::vector<std::string>{"a> /moved", "b> /moved", "b< 307", "a< 307", "a> /hop",
                                               "b> /hop", "b< 200", "a< 200"}));
    notes.clear();
    EXPECT_FALSE(client.get(kNoContext, closed_url()));
    EXPECT_EQ(notes, (std::vector<std::string>{"a> /", "b> /", "b< error", "a< error"}));
  });
}

TEST_P(ClientMiddlewareTest, ChangesWhatGoesOutAndGivesTheRequestBackAsItWas) {
  run_with(GetParam(), [] {
    TestServer server(hop_router());
    const ClientMiddleware marks = [&](const Context& ctx, ClientRequest& request, const ClientNext& next) {
      request.add_header("X-Mark", "1");
      Url url = *request.url();
      if (url.target == "/logical") url.target = "/see-other";
      request.set_url(std::move(url));
      return next(ctx, request);
    };
    Client client({.middleware = {marks}});
    ClientRequest request(Method::kPost, url_of(server, "/logical"));
    request.set_body("text", "a/b");
    for (int i = 0; i < 2; ++i) {
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->body(), "GET mark=1 auth=- body=");
      EXPECT_EQ(request.method(), Method::kPost);
      EXPECT_EQ(request.url()->target, "/logical");
      EXPECT_EQ(request.header("X-Mark"), std::nullopt);
      EXPECT_EQ(request.header("Content-Type"), "a/b");
      EXPECT_EQ(request.body(), "text");
    }
    ClientRequest kept(Method::kPost, url_of(server, "/moved"));
    kept.set_body("text");
    EXPECT_EQ(client.send(kNoContext, kept)->body(), "POST mark=1 auth=- body=text");
  });
}

TEST_P(ClientMiddlewareTest, SendsBodiesOfEveryKind) {
  run_with(GetParam(), [] {
    TestServer server(hop_router());
    int seen = 0;
    Client client({.middleware = {[&](const Context& ctx, ClientRequest& request, const ClientNext& next) {
                     if (++seen == 2) request.set_body("instead");
                     return next(ctx, request);
                   }}});
    ClientRequest source(Method::kPut, url_of(server, "/hop"));
    int left = 3;
    source.set_body_source([&](std::span<std::byte> into) -> Result<std::size_t> {
      if (left-- == 0) return 0;
      into[0] = std::byte{'x'};
      return 1;
    });
    EXPECT_EQ(source.body(), std::nullopt);
    source.keep_sending();
    EXPECT_EQ(client.send(kNoContext, source)->body(), "PUT mark=- auth=- body=xxx");
    EXPECT_EQ(client.send(kNoContext, ClientRequest(Method::kPut, url_of(server, "/hop")))->body(),
              "PUT mark=- auth=- body=instead");
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/hop"))->body(), "GET mark=- auth=- body=");
  });
}

TEST_P(ClientMiddlewareTest, GetsNoCredentialsOfAnotherOrigin) {
  run_with(GetParam(), [] {
    testing::Server server(hop_router());
    std::vector<std::string> credentials;
    Client client(
        {.dial = [&](const Context& ctx, const Url&) { return server.network().dial(ctx, server.address()); },
         .middleware = {[&](const Context& ctx, ClientRequest& request, const ClientNext& next) {
           credentials.emplace_back(request.header("Authorization").value_or("-"));
           return next(ctx, request);
         }}});
    ClientRequest request(Method::kGet, "http://api.example/away");
    request.set_header("Authorization", "Bearer 1");
    EXPECT_EQ(client.send(kNoContext, request)->body(), "GET mark=- auth=- body=");
    EXPECT_EQ(credentials, (std::vector<std::string>{"Bearer 1", "-"}));
    EXPECT_EQ(request.header("Authorization"), "Bearer 1");
  });
}

TEST_P(ClientMiddlewareTest, AnswersWithErrorsAndExceptionsOfItsOwn) {
  run_with(GetParam(), [] {
    TestServer server(hop_router());
    Client refuses(
        {.middleware = {[](const Context&, ClientRequest&, const ClientNext&) -> Result<ClientResponse> {
           return std::unexpected(errorf("not today"));
         }}});
    ClientRequest request(Method::kGet, url_of(server, "/hop"));
    const Result<ClientResponse> refused = refuses.send(kNoContext, request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "GET " + url_of(server, "/hop") + ": not today");
    EXPECT_FALSE(request.sent());
    EXPECT_EQ(refuses.stats().requests, 0u);
    Client throws(
        {.middleware = {[](const Context&, ClientRequest& out, const ClientNext&) -> Result<ClientResponse> {
           out.set_header("X-Mark", "1");
           throw std::runtime_error("on purpose");
         }}});
    EXPECT_THROW((void)throws.send(kNoContext, request), std::runtime_error);
    EXPECT_EQ(request.header("X-Mark"), std::nullopt);
    Client broken({.middleware = {[](const Context& ctx, ClientRequest& out, const ClientNext& next) {
                     out.set_url({.https = false, .authority = "a b", .target = "/"});
                     return next(ctx, out);
                   }}});
    EXPECT_TRUE(broken.send(kNoContext, request).error().is(Errc::kBadAddress));
    EXPECT_EQ(*request.url(), *Url::parse(url_of(server, "/hop")));
  });
}

TEST_P(ClientMiddlewareTest, MaySendSeveralTimesAndKnowsWhetherTheLastOneWasSent) {
  run_with(GetParam(), [] {
    ScriptedServer silent([](net::Conn& conn, int) { (void)ScriptedServer::read_request(conn); });
    std::vector<bool> sent;
    Client client({.middleware = {[&](const Context& ctx, ClientRequest& request, const ClientNext& next) {
                     Result<ClientResponse> first = next(ctx, request);
                     EXPECT_FALSE(first);
                     sent.push_back(request.sent());
                     request.set_url(*Url::parse(closed_url()));
                     Result<ClientResponse> second = next(ctx, request);
                     EXPECT_FALSE(second);
                     sent.push_back(request.sent());
                     return second;
                   }}});
    ClientRequest request(Method::kPost, silent.url());
    EXPECT_FALSE(client.send(kNoContext, request));
    EXPECT_EQ(sent, (std::vector<bool>{true, false}));
    EXPECT_TRUE(request.sent()) << "the first one was";
  });
}

// So that what is repeated is not signed twice.
TEST_P(ClientMiddlewareTest, SeesNothingOfWhatIsChangedFurtherInside) {
  run_with(GetParam(), [] {
    TestServer server(hop_router());
    const ClientMiddleware twice = [](const Context& ctx, ClientRequest& request, const ClientNext& next) {
      EXPECT_EQ(next(ctx, request)->status(), 404);
      EXPECT_EQ(request.header("X-Mark"), std::nullopt);
      EXPECT_EQ(request.url()->target, "/a");
      request.set_url(*request.url()->resolve("/hop"));
      return next(ctx, request);
    };
    const ClientMiddleware adds = [](const Context& ctx, ClientRequest& request, const ClientNext& next) {
      EXPECT_EQ(request.header("X-Mark"), std::nullopt);
      request.add_header("X-Mark", "1");
      return next(ctx, request);
    };
    Client client({.middleware = {twice, adds}});
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/a"))->body(), "GET mark=1 auth=- body=");
  });
}

TEST_P(ClientMiddlewareTest, HasAContextThatEndsWithTheTimeoutOfTheCall) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    testing::Server server(hop_router());
    ClientOptions options{
        .dial = [&](const Context& ctx, const Url&) { return server.network().dial(ctx, server.address()); },
        .timeout = 5s};
    options.middleware = {
        [](const Context& ctx, ClientRequest& request, const ClientNext& next) -> Result<ClientResponse> {
          if (const Result<void> slept = sleep_for(ctx, request.url()->target == "/hop" ? 1s : 1h); !slept)
            return std::unexpected(slept.error());
          return next(ctx, request);
        }};
    Client client(std::move(options));
    Result<ClientResponse> res = client.get(kNoContext, server.url("/hop"));
    ASSERT_TRUE(res) << res.error().message();
    EXPECT_EQ(res->body(), "GET mark=- auth=- body=") << "it lives until the end of the body";
    EXPECT_EQ(clock.elapsed(), 1s);
    const Result<ClientResponse> late = client.get(kNoContext, server.url("/moved"));
    ASSERT_FALSE(late);
    EXPECT_TRUE(late.error().timeout()) << late.error().message();
    EXPECT_EQ(clock.elapsed(), 6s);
  });
}

TEST_P(ClientMiddlewareTest, IsAroundTheRequestsOfAReverseProxy) {
  run_with(GetParam(), [] {
    TestServer upstream(hop_router());
    ReverseProxy proxy(
        {.upstreams = {"http://" + upstream.address()},
         .client = {.middleware = {[](const Context& ctx, ClientRequest& request, const ClientNext& next) {
                      request.set_header("X-Mark", "proxied");
                      return next(ctx, request);
                    }}}});
    TestServer front(proxy);
    Client client;
    EXPECT_EQ(client.post(kNoContext, url_of(front, "/hop"), "a/b", "text")->body(),
              "POST mark=proxied auth=- body=text");
    EXPECT_EQ(client.get(kNoContext, url_of(front, "/moved"))->status(), 200);
  });
}

}  // namespace
}  // namespace tuza::http::testing
