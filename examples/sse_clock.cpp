// A clock by server-sent events: sse_clock, and a browser on http://127.0.0.1:8080
//
//     GET /          the page
//     GET /events    an event "tick" at each second of the server; its id is the number of seconds since 1970
//
// A browser that was disconnected says which tick was its last, and gets an event "missed" with the number of ticks that
// it has not seen. When the server shuts down, it says "bye" and asks browsers to come back in five seconds.
#include <tuza/examples/sse_clock/page.h>
#include <tuza/framework/app.h>
#include <tuza/http/sse.h>
#include <tuza/sched/time/sleep.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
using tuza::http::Request;
using tuza::http::ResponseWriter;
using Seconds = std::chrono::sys_seconds;

Seconds this_second() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

// "12:34:56", in UTC. (GCC 12 cannot format it.)
std::string time_of_day(Seconds when) {
  const std::chrono::hh_mm_ss time(when - std::chrono::floor<std::chrono::days>(when));
  const auto two = [](std::int64_t value) {
    return std::string(value < 10 ? "0" : "") + std::to_string(value);
  };
  return two(time.hours().count()) + ":" + two(time.minutes().count()) + ":" + two(time.seconds().count());
}

// The ticks between the last one that the client has seen and this one; nothing if it has not said, or nonsense.
std::optional<std::int64_t> missed(std::optional<std::string_view> last, Seconds now) {
  if (!last) return std::nullopt;
  std::int64_t seen = 0;
  const auto [end, error] = std::from_chars(last->data(), last->data() + last->size(), seen);
  const std::int64_t second = now.time_since_epoch().count();
  if (error != std::errc{} || end != last->data() + last->size() || seen < 0 || seen >= second) {
    return std::nullopt;
  }
  return second - 1 - seen;
}

void events(Request& req, ResponseWriter& res) {
  auto stream = tuza::http::sse(req, res);
  Seconds now = this_second();
  if (const auto count = missed(stream.last_event_id(), now); count && *count > 0) {
    if (!stream.send({.data = std::to_string(*count), .event = "missed"})) return;
  }
  for (;; now = this_second()) {
    const std::string id = std::to_string(now.time_since_epoch().count());
    if (!stream.send({.data = time_of_day(now), .event = "tick", .id = id})) return;  // the client has gone
    const auto next = now + 1s - std::chrono::system_clock::now();
    if (!tuza::sleep_for(stream.context(), next)) break;
  }
  // Not to a client that has gone: then this fails.
  (void)stream.send({.data = "", .event = "bye", .retry = 5s});
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("sse_clock");
  return app.run(argc, argv, [&app] {
    app.router().handle("GET /{$}", [](Request&, ResponseWriter& res) {
      res.set_header(
          "Content-Security-Policy",
          "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'");
      res.html(sse_clock::kPage);
    });
    app.router().handle("GET /events", events);
  });
}
