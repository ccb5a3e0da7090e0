// Every request of requests.txt against a real server: sent as a whole, byte by byte, split at line ends, and
// over TLS.
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/tests/request_cases.h>
#include <tuza/http/wire/chars.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/semaphore.h>

#include <algorithm>
#include <regex>

namespace tuza::http::testing {
namespace {

enum class Mode { kWhole, kBytes, kLineEnds, kTls };

std::vector<std::string> pieces(const RequestCase& c, Mode mode) {
  std::vector<std::size_t> ends = c.splits;
  if (ends.empty() && mode == Mode::kBytes && c.bytes.size() <= 3000) {
    for (std::size_t i = 1; i < c.bytes.size(); ++i) ends.push_back(i);
  }
  if (ends.empty() && mode == Mode::kLineEnds && c.bytes.size() <= 3000) {
    for (std::size_t i = 1; i < c.bytes.size(); ++i) {
      const auto is_end = [&](std::size_t at) { return c.bytes[at] == '\r' || c.bytes[at] == '\n'; };
      if (is_end(i) || is_end(i - 1)) ends.push_back(i);
    }
  }
  ends.push_back(c.bytes.size());
  std::vector<std::string> result;
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    if (end > from) result.push_back(c.bytes.substr(from, end - from));
    from = std::max(from, end);
  }
  return result;
}

class Conversation {
 public:
  Conversation(const RequestCase& c, net::Conn conn) : case_(c), client_(std::move(conn)) {}

  void run(Mode mode) {
    WaitGroup sending;
    // The server may answer, and stop reading, before everything is sent.
    sending.go([&] {
      for (const std::string& piece : pieces(case_, mode)) {
        client_.send(piece);
        yield();
      }
    });
    wait_for_answer();
    sending.wait();
  }

  // For a machine so slow that an answer which must come has not come yet.
  template <class Good>
  void read_until(Good good) {
    client_.read_until(good, 10s);
  }

  // One letter per final response, then the fate of the connection; see requests.txt.
  [[nodiscard]] std::string outcome() const { return letters() + (client_.closed() ? "c" : "o"); }

  [[nodiscard]] std::vector<Response> responses() const {
    std::vector<Response> all = parse_responses(client_.received(), client_.closed(), case_.to_head);
    std::erase_if(all, [](const Response& r) { return r.status >= 100 && r.status < 200; });
    return all;
  }

 private:
  // Waits as long as the answer can still change. A server that waits for more input is told that none
  // follows.
  void wait_for_answer() {
    const auto patience = 300ms;
    const bool wants_close = case_.expect == RequestCase::Expect::kReject || case_.must_close;
    client_.read_until([&] { return !wants_close && settled(); }, wants_close ? 400ms : 1000ms);
    if (!client_.closed() && !settled() && !ends_in_error()) {
      (void)client_.conn().close_write();
      half_closed_at_ = letters().size();
      client_.read_until_closed(10s);
    } else if (!client_.closed() && wants_close) {
      client_.read_until_closed(10s);
    } else {
      client_.read_until_closed(patience / 3);  // nothing more may come
    }
  }
  [[nodiscard]] bool settled() const {
    const std::vector<Response> all = responses();
    return static_cast<int>(all.size()) >= case_.accepted + case_.good_first && !all.empty() &&
           all.back().complete;
  }
  [[nodiscard]] bool ends_in_error() const {
    const std::string all = letters();
    return !all.empty() && (all.back() == 'E' || all.back() == 'N');
  }
  [[nodiscard]] std::string letters() const {
    std::string text;
    for (const Response& r : responses()) {
      if (text.size() == half_closed_at_) text += 'h';
      text += letter(r.status);
    }
    if (text.size() == half_closed_at_) text += 'h';
    return text;
  }
  [[nodiscard]] char letter(int status) const {
    const auto& good = case_.also_good;
    if ((status >= 200 && status < 300) || std::find(good.begin(), good.end(), status) != good.end())
      return 'A';
    if (status == 404 || status == 405) return 'N';
    if (status >= 300 && status < 400) return 'R';
    return status >= 400 ? 'E' : 'Z';
  }

  const RequestCase& case_;
  RawClient client_;
  std::size_t half_closed_at_ = std::string::npos;
};

std::string expected_outcome(const RequestCase& c) {
  const std::string n = std::to_string(c.accepted), first = "[AN]{" + std::to_string(c.good_first) + "}";
  if (!c.outcome.empty()) return c.outcome;
  switch (c.expect) {
    case RequestCase::Expect::kAccept: return "^[AN]{" + n + "}" + (c.must_close ? "c$" : "[oc]$");
    case RequestCase::Expect::kReject:
      return "^" + first + "h?[EN]?c$" + (c.may_stay_open ? "|^" + first + "[EN]o$" : "");
    case RequestCase::Expect::kEither:
      return "^(?=(?:[^AN]*[AN]){0," + n + "}[^AN]*$)[ANERh]*" + (c.must_close ? "c$" : "[oc]$");
  }
  return "";
}

class ConformanceTest : public ::testing::TestWithParam<Mode> {};
std::string mode_name(const ::testing::TestParamInfo<Mode>& mode) {
  switch (mode.param) {
    case Mode::kWhole: return "Whole";
    case Mode::kBytes: return "ByteByByte";
    case Mode::kLineEnds: return "SplitAtLineEnds";
    case Mode::kTls: return "OverTls";
  }
  return "";
}
INSTANTIATE_TEST_SUITE_P(Sent, ConformanceTest,
                         ::testing::Values(Mode::kWhole, Mode::kBytes, Mode::kLineEnds, Mode::kTls),
                         &mode_name);

Router example_router() {
  Router router;
  router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("Hello, World!"); });
  router.handle("POST /{$}", [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.text(*body);
  });
  return router;
}

TEST_P(ConformanceTest, EveryCaseEndsAsItMust) {
  const std::vector<RequestCase> cases = load_request_cases();
  ASSERT_GT(cases.size(), 200u);
  net::testing::Authority authority;
  const net::TlsCertificate site = authority.issue("site");
  tuza::testing::run_with(2, [&] {
    const bool over_tls = GetParam() == Mode::kTls;
    const auto client = net::TlsClient::load({.ca_file = authority.file()}).value();
    // No case depends on a timeout; a busy machine must not reach one.
    TestServer server(example_router(), {.header_timeout = 120s, .body_timeout = 120s},
                      over_tls ? net::TlsServer::load({.certificates = {site}}).value() : nullptr);
    const auto connect = [&] {
      return (over_tls ? client->dial("tcp", server.address()) : net::dial("tcp", server.address())).value();
    };
    Semaphore at_once(16);
    Mutex mutex;
    std::vector<std::string> wrong;
    WaitGroup group;
    for (const RequestCase& c : cases) {
      at_once.acquire();
      // Compiled here, not on the goroutine: compiling a regex writes to a cache of the locale,
      // unsynchronised.
      group.go([&, pattern = std::regex(expected_outcome(c))] {
        Conversation conversation(c, connect());
        conversation.run(GetParam());
        conversation.read_until([&] { return std::regex_search(conversation.outcome(), pattern); });
        const std::string outcome = conversation.outcome();
        bool good = std::regex_search(outcome, pattern);
        for (const Response& r : conversation.responses()) {
          if (!c.without_header.empty()) {
            std::string name = c.without_header;
            std::transform(name.begin(), name.end(), name.begin(), lower);
            good = good && !r.has(name);
          }
          if (!c.without_body.empty()) good = good && r.body.find(c.without_body) == std::string::npos;
          if (c.echo && r.status == 200) good = good && r.body == *c.echo;
        }
        if (!good) {
          const std::scoped_lock lock(mutex);
          wrong.push_back(c.name + ": " + outcome + " does not match " + expected_outcome(c) + " (" + c.rfc +
                          ")");
        }
        at_once.release();
      });
    }
    group.wait();
    for (const std::string& line : wrong) ADD_FAILURE() << line;
    RawClient last(connect());
    last.send(get("/"));
    EXPECT_EQ(last.read_responses(1).size(), 1u) << "the server must still be alive";
  });
}

}  // namespace
}  // namespace tuza::http::testing
