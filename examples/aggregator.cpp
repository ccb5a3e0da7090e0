// An HTTP service that asks several others at once, under one deadline, and answers with what has come by then:
//
//     aggregator --set aggregator.upstreams="http://127.0.0.1:9001/user http://127.0.0.1:9002/orders http://127.0.0.1:9003/offers"
//
//     GET /    {"answers": {URL: "...", ...}, "errors": {URL: "...", ...}}: 200 if any has answered, otherwise 502
//
// An upstream that is slow, down or wrong costs its own part of the answer, and no more time than the deadline.
#include <tuza/framework/app.h>
#include <tuza/http/client.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/join_errors.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/try.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <expected>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using tuza::Result;
using tuza::http::Request;
using tuza::http::ResponseWriter;

Result<std::string> ask(const tuza::Context& ctx, tuza::http::Client& client, std::string_view url) {
  TUZA_TRY(auto res, client.get(ctx, url));
  if (res.status() != 200) return std::unexpected(tuza::errorf("GET {}: status {}", url, res.status()));
  return res.body();
}

//! [ask_all]
// One goroutine for each; when the context ends, those that still wait return its cause.
std::vector<Result<std::string>> ask_all(const tuza::Context& ctx, tuza::http::Client& client,
                                         const std::vector<std::string>& urls) {
  std::vector<Result<std::string>> answers(urls.size());
  tuza::WaitGroup group;
  for (std::size_t i = 0; i < urls.size(); ++i) group.go([&, i] { answers[i] = ask(ctx, client, urls[i]); });
  group.wait();
  return answers;
}
//! [ask_all]

void serve(Request& req, ResponseWriter& res, tuza::http::Client& client,
           const std::vector<std::string>& urls, std::chrono::milliseconds deadline) {
  const auto [ctx, cancel] =
      tuza::with_timeout(req.context(), deadline);  // earlier if our own client goes away
  const std::vector<Result<std::string>> all = ask_all(ctx, client, urls);
  auto answers = nlohmann::json::object();
  auto errors = nlohmann::json::object();
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (all[i]) {
      answers[urls[i]] = *all[i];
    } else {
      errors[urls[i]] = all[i].error().message();
    }
  }
  if (const auto failed = tuza::join_errors(all); !failed) {
    static tuza::LogLimiter limiter;
    limiter.log(tuza::LogLevel::kWarning, std::to_string(errors.size()) + " of " +
                                              std::to_string(urls.size()) +
                                              " upstreams: " + failed.error().message());
  }
  if (answers.empty()) res.status(502);
  // What upstreams send need not be UTF-8.
  const nlohmann::json answer = {{"answers", std::move(answers)}, {"errors", std::move(errors)}};
  res.json(answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::vector<std::string> urls_of(const std::string& list) {
  std::istringstream words(list);
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("aggregator");
  const auto upstreams = app.setting("aggregator.upstreams",
                                     "http://127.0.0.1:9001/ http://127.0.0.1:9002/ http://127.0.0.1:9003/",
                                     "URLs to ask, with spaces between them");
  upstreams.check([](const std::string& list) -> tuza::Result<void> {
    const std::vector<std::string> urls = urls_of(list);
    if (urls.empty()) return std::unexpected(tuza::errorf("at least one URL"));
    for (const std::string& url : urls) {
      if (const auto parsed = tuza::http::Url::parse(url); !parsed) return std::unexpected(parsed.error());
    }
    return {};
  });
  const auto deadline =
      app.setting("aggregator.deadline", 500ms, "How long a request waits for them", {1ms, 60'000ms});
  std::optional<tuza::http::Client> client;
  std::vector<std::string> urls;
  return app.run(argc, argv, [&] {
    client.emplace();
    urls = urls_of(*upstreams);
    app.router().handle(
        "GET /{$}", [&](Request& req, ResponseWriter& res) { serve(req, res, *client, urls, *deadline); });
  });
}
