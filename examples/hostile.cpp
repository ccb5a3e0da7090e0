// A server whose handlers do what frameworks forbid, and never cooperate. The load test `stall` measures how the other
// requests fare meanwhile.
//
//     GET /burn?ms=200            computes for 200 ms of CPU; so do /mutex, /malloc, /memcpy, /throw,
//                                 /printf, /sort and /regex, each in its own way (hostile/work.h)
//     GET /sleep?ms=200           sleeps, and blocks the thread; /read waits in a blocking read
//     GET /file?bytes=1000000     reads a file; &cold=1: from the disk, not from the page cache
//     GET /maybe?permille=64      `Hello, World!`, with this probability after 1 ms of CPU
//     GET /                       `Hello, World!`
//     GET /stats                  counts of the work done, and the lateness of a goroutine that ticks every
//                                 millisecond; ?reset=1: the next response starts counting here
#include <tuza/examples/hostile/ticker.h>
#include <tuza/examples/hostile/work.h>
#include <tuza/framework/app.h>
#include <tuza/sched/go.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

using hostile::Kind;
using tuza::http::Request;
using tuza::http::ResponseWriter;

namespace {

constexpr std::uint64_t kMsMax = 600'000;
constexpr std::uint64_t kBytesMax = std::uint64_t{16} << 30;

// Returns a query parameter. If it is not a number up to `max`, responds with 400 and returns nothing.
std::optional<std::uint64_t> number(Request& req, ResponseWriter& res, const char* name, std::uint64_t max) {
  const std::string_view text = req.query_value(name).value_or("");
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value <= max) return value;
  res.error(400, std::string(name) + " must be a number from 0 to " + std::to_string(max) + "\n");
  return std::nullopt;
}

void answer(ResponseWriter& res, const hostile::Job& job, const hostile::Outcome& done) {
  char text[256];
  const int length = std::snprintf(
      text, sizeof text,
      R"({"kind":"%s","cpu_ms":%.3f,"wall_ms":%.3f,"iterations":%llu,"eintr":%llu,"errors":%llu})",
      hostile::name_of(job.kind).data(), done.cpu_ms, done.wall_ms,
      static_cast<unsigned long long>(done.iterations), static_cast<unsigned long long>(done.eintr),
      static_cast<unsigned long long>(done.errors));
  if (done.errors > 0) res.status(500);
  res.json({text, static_cast<std::size_t>(length)});
}

void do_job(Kind kind, Request& req, ResponseWriter& res) {
  const bool file = kind == Kind::kFile;
  const auto amount = number(req, res, file ? "bytes" : "ms", file ? kBytesMax : kMsMax);
  if (!amount) return;
  const hostile::Job job{.kind = kind,
                         .ms = file ? 0 : *amount,
                         .bytes = file ? *amount : 0,
                         .cold = req.query_value("cold") == "1"};
  answer(res, job, hostile::work(job));
}

void stats(hostile::Ticker& ticker, Request& req, ResponseWriter& res) {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  char seconds[64];
  std::snprintf(seconds, sizeof seconds, "{\"seconds\":%.6f,\"kinds\":", now.count());
  res.json(seconds + hostile::counters_json() +
           ",\"ticker\":" + ticker.json(req.query_value("reset") == "1") + "}\n");
}

tuza::http::Router routes(hostile::Ticker& ticker) {
  tuza::http::Router router;
  for (std::size_t i = 0; i < hostile::kNames.size(); ++i) {
    const auto kind = static_cast<Kind>(i);
    router.handle("GET /" + std::string(hostile::name_of(kind)),
                  [kind](Request& req, ResponseWriter& res) { do_job(kind, req, res); });
  }
  router.handle("GET /maybe", [](Request& req, ResponseWriter& res) {
    const auto permille = number(req, res, "permille", 1000);
    if (!permille) return;
    hostile::maybe_burn(*permille);
    res.send("text/plain", "Hello, World!");
  });
  router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.send("text/plain", "Hello, World!"); });
  router.handle("GET /stats", [&ticker](Request& req, ResponseWriter& res) { stats(ticker, req, res); });
  return router;
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("hostile");
  app.set_default("shutdown.timeout", "1s");
  const tuza::Setting<bool> tick =
      app.setting("hostile.ticker", true, "Whether a goroutine ticks each millisecond");
  auto& ticker = *new hostile::Ticker;  // never freed: handlers may use it until the process exits
  return app.run(argc, argv, [&] {
    hostile::prepare();
    if (*tick) tuza::go({.name = "ticker"}, [&ticker] { ticker.run(); });
    app.router() = routes(ticker);
  });
}
