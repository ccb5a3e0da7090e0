// What clients see of handlers that do not do what they should, and of those that do unusual things: the same from the bare
// call, in memory, on a socket and over TLS.
#include <tuza/http/testing.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

enum class Carrier : std::uint8_t { kCall, kMemory, kSocket, kTls };

class HandlerBehaviourTest : public ::testing::TestWithParam<Carrier> {};
std::string name_of(const ::testing::TestParamInfo<Carrier>& given) {
  constexpr std::array kNames{"Call", "Memory", "Socket", "Tls"};
  return kNames[static_cast<std::size_t>(given.param)];
}
INSTANTIATE_TEST_SUITE_P(Over, HandlerBehaviourTest,
                         ::testing::Values(Carrier::kCall, Carrier::kMemory, Carrier::kSocket, Carrier::kTls),
                         name_of);

struct Behaviour {
  const char* title;
  std::function<void(Request&, ResponseWriter&)> handler;
  std::string
      seen;  // status and body; "broken": the client sees that it is not all; "closes": the connection ends behind it
  const char* method = "GET";
  std::string body = {};
};

// The parts of a response are words here.
std::string text_of(int status, std::string_view body, bool complete, bool closes) {
  return std::to_string(status) + " " + std::string(body) + (complete ? "" : " broken") +
         (closes ? " closes" : "");
}

const char* const kFailed = "500 Internal Server Error\n closes";

void send_half(ResponseWriter& res) {
  (void)res.write("half");
  (void)res.flush();
}

std::vector<Behaviour> that_fail() {
  return {
      {"nothing at all", [](Request&, ResponseWriter&) {}, "200 "},
      {"throws at once", [](Request&, ResponseWriter&) { throw std::runtime_error("on purpose"); }, kFailed},
      {"throws what is no exception", [](Request&, ResponseWriter&) { throw 7; }, kFailed},
      {"throws a status", [](Request&, ResponseWriter&) { throw StatusError(409, "taken"); }, "409 taken\n"},
      {"throws with a response that is not sent",
       [](Request&, ResponseWriter& res) {
         (void)res.write("half");
         throw std::runtime_error("on purpose");
       },
       kFailed},
      {"throws after the first byte",
       [](Request&, ResponseWriter& res) {
         send_half(res);
         throw std::runtime_error("on purpose");
       },
       "200 half broken closes"},
      {"goexit() at once", [](Request&, ResponseWriter&) { goexit(); }, "nothing"},
      {"goexit() behind a whole response",
       [](Request&, ResponseWriter& res) {
         res.text("whole");
         goexit();
       },
       "200 whole closes"},
      {"goexit() with a response that is not sent",
       [](Request&, ResponseWriter& res) {
         (void)res.write("half");
         goexit();
       },
       "nothing"},
      {"goexit() after the first byte",
       [](Request&, ResponseWriter& res) {
         send_half(res);
         goexit();
       },
       "200 half broken closes"},
  };
}

std::vector<Behaviour> that_contradict_themselves() {
  return {
      {"less than was declared",
       [](Request&, ResponseWriter& res) {
         res.set_header("Content-Length", "10");
         (void)res.write("four");
       },
       "200 four broken closes"},
      {"more than was declared",
       [](Request&, ResponseWriter& res) {
         res.set_header("Content-Length", "2");
         (void)res.write("four");
       },
       kFailed},
      {"throws behind all that was declared",
       [](Request&, ResponseWriter& res) {
         res.set_header("Content-Length", "4");
         (void)res.write("full");
         (void)res.flush();
         throw std::runtime_error("on purpose");
       },
       "200 full closes"},
      {"two whole responses",
       [](Request&, ResponseWriter& res) {
         res.text("first");
         res.text("second");
       },
       "200 first closes"},
      {"writes behind a whole response",
       [](Request&, ResponseWriter& res) {
         res.text("first");
         (void)res.write("second");
       },
       "200 first closes"},
      {"a status after the first byte",
       [](Request&, ResponseWriter& res) {
         send_half(res);
         res.status(500);
       },
       "200 half broken closes"},
      {"a field after the first byte",
       [](Request&, ResponseWriter& res) {
         send_half(res);
         res.set_header("X-Late", "1");
       },
       "200 half broken closes"},
  };
}

std::vector<Behaviour> that_ask_for_what_cannot_be() {
  return {
      {"an error after a part that was not sent",
       [](Request&, ResponseWriter& res) {
         (void)res.write("half");
         res.error(503);
       },
       "503 Service Unavailable\n"},
      {"an error after the first byte",
       [](Request&, ResponseWriter& res) {
         send_half(res);
         res.error(503);
       },
       "200 half broken closes"},
      {"a line end in a field",
       [](Request&, ResponseWriter& res) {
         res.set_header("X-Id", "1\r\nSet-Cookie: a=b");
         res.text("never");
       },
       kFailed},
      {"a body where none is allowed",
       [](Request&, ResponseWriter& res) {
         res.status(204);
         (void)res.write("ignored");
       },
       "204 "},
      {"a body for 304",
       [](Request&, ResponseWriter& res) {
         res.status(304);
         (void)res.write("ignored");
       },
       "304 "},
      {"a status that is none",
       [](Request&, ResponseWriter& res) {
         res.status(42);
         res.text("never");
       },
       kFailed},
      {"an interim status",
       [](Request&, ResponseWriter& res) {
         res.status(103);
         res.text("never");
       },
       kFailed},
  };
}

std::vector<Behaviour> that_may_look_odd() {
  return {
      {"writes from two goroutines, one after the other",
       [](Request&, ResponseWriter& res) {
         WaitGroup group;
         group.go([&] { (void)res.write("one "); });
         group.wait();
         group.go([&] { (void)res.write("two"); });
         group.wait();
       },
       "200 one two"},
      {"answers without reading the body", [](Request&, ResponseWriter& res) { res.text("early"); },
       "200 early", "POST", std::string(2'000, 'b')},
      {"reads the body twice",
       [](Request& req, ResponseWriter& res) {
         const std::string first = std::string(req.body().value_or("error"));
         res.text(first + "," + std::string(req.body().value_or("error")));
       },
       "200 abc,abc", "POST", "abc"},
      {"reads the body after it has answered",
       [](Request& req, ResponseWriter& res) {
         res.text("early");
         (void)req.body();
       },
       "200 early", "POST", "abc"},
      {"the last response",
       [](Request&, ResponseWriter& res) {
         res.close();
         res.text("last");
       },
       "200 last closes"},
  };
}

std::string over_a_call(const Behaviour& one) {
  const CallResult r = call(one.handler, std::string(one.method) + " /", {.body = one.body});
  if (r.status == 0) return "nothing";
  return text_of(r.status, r.body, r.complete, r.closes);
}

std::string over_a_server(const Behaviour& one, Server& server, bool tls) {
  net::Conn conn = server.dial().value();
  if (tls) {
    conn = net::TlsClient::load({.insecure_skip_verify = true})  // whom it trusts is tested elsewhere
               .value()
               ->start(std::move(conn), "localhost")
               .value();
  }
  RawClient raw(std::move(conn));
  std::string request = std::string(one.method) + " / HTTP/1.1\r\nHost: h\r\n";
  if (!one.body.empty()) request += "Content-Length: " + std::to_string(one.body.size()) + "\r\n";
  raw.send(request + "\r\n" + one.body);
  const auto first = [&] {
    const std::vector<Response> got = parse_responses(raw.received(), raw.closed());
    return got.empty() ? Response{} : got.front();
  };
  raw.read_until([&] { return first().complete; });
  const Response response = first();
  if (!raw.closed()) {
    raw.send("OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    raw.read_until_closed();
  }
  const bool closes = parse_responses(raw.received(), true).size() == 1;
  if (response.status == 0) return "nothing";
  return text_of(response.status, response.body, response.complete, closes);
}

TEST_P(HandlerBehaviourTest, IsTheSameWhateverCarriesIt) {
  static net::testing::Authority authority;
  static const net::TlsCertificate site = authority.issue("site");
  run_with(2, [] {
    std::vector<Behaviour> all;
    for (const auto& behaviours :
         {that_fail(), that_contradict_themselves(), that_ask_for_what_cannot_be(), that_may_look_odd()})
      all.insert(all.end(), behaviours.begin(), behaviours.end());
    for (const Behaviour& one : all) {
      if (GetParam() == Carrier::kCall) {
        EXPECT_EQ(over_a_call(one), one.seen) << one.title;
        continue;
      }
      ServerSetup setup{.socket = GetParam() != Carrier::kMemory};
      if (GetParam() == Carrier::kTls) setup.tls = net::TlsServer::load({.certificates = {site}}).value();
      Server server(one.handler, std::move(setup));
      EXPECT_EQ(over_a_server(one, server, GetParam() == Carrier::kTls), one.seen) << one.title;
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
