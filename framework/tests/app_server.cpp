// The program that the tests of tuza::App drive: an App with its own settings and slow handlers.
#include <tuza/framework/app.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/sleep.h>

#include <spdlog/spdlog.h>

#include <chrono>
#include <expected>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using tuza::http::Request;
using tuza::http::ResponseWriter;

std::int64_t number(Request& req, const char* name) {
  return std::stoll(std::string(req.query_value(name).value_or("0")));
}

void handle_all(tuza::http::Router& router) {
  router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("here\n"); });
  // Waits, and then reports that it has.
  router.handle("GET /sleep", [](Request& req, ResponseWriter& res) {
    spdlog::info("sleeps");
    tuza::sleep_for(std::chrono::milliseconds(number(req, "ms")));
    res.text("slept\n");
  });
  // Writes as long as the client reads: only a forced shutdown ends it.
  router.handle("GET /endless", [](Request&, ResponseWriter& res) {
    while (res.write("x") && res.flush()) tuza::sleep_for(std::chrono::milliseconds(10));
  });
  // Says what ends the request.
  router.handle("GET /ends", [](Request& req, ResponseWriter&) {
    spdlog::info("waits");
    req.until_shutdown().wait();
    spdlog::info("notice: {}", req.until_shutdown().cause().message());
    req.context().wait();
    spdlog::info("end: {}", req.context().cause().message());
  });
  router.handle("GET /log", [](Request& req, ResponseWriter& res) {
    const std::string text(static_cast<std::size_t>(number(req, "bytes")), 'x');
    const std::int64_t lines = number(req, "lines");
    for (std::int64_t i = 0; i < lines; ++i) spdlog::info("line {} {}", i, text);
    res.text("logged\n");
  });
  router.handle("GET /levels", [](Request&, ResponseWriter& res) {
    spdlog::debug("a debug line");
    spdlog::warn("a line\nin \"two\" with \x1b[31m");
    res.text("logged\n");
  });
  router.handle("GET /throw", [](Request&, ResponseWriter&) { throw std::runtime_error("on purpose"); });
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("app_server", "3.2.1");
  const auto start_delay =
      app.setting("test.start_delay", std::chrono::milliseconds(0), "How long the start takes");
  const auto fail = app.setting("test.fail", false, "Whether the start fails");
  const auto count = app.setting("test.count", 3, "A number", {1, 10}, "things");
  const auto size = app.setting("test.size", tuza::Bytes{1024}, "A size", {{0}, {1 << 20}});
  const auto text = app.setting("test.text", "as \"it\" is", "A text").check([](const std::string& value) {
    if (value == "throw") throw std::runtime_error("not this word");
  });
  const auto list = app.setting("test.list", std::vector<std::string>{"a"}, "Several");
  // Rules see the values of all settings, and may park.
  list.check([count](const std::vector<std::string>& value) -> tuza::Result<void> {
    tuza::sleep_for(std::chrono::milliseconds(1));
    if (std::ssize(value) <= *count) return {};
    return std::unexpected(tuza::errorf("more than {} (test.count)", *count));
  });
  const auto admin_route = app.setting("test.admin_route", "GET /my", "A route of the admin address");
  const auto orders = app.metrics().counter("test_orders_total", "Orders, by kind", {"kind"});
  return app.run(argc, argv, [&] {
    tuza::sleep_for(*start_delay);
    if (*fail) throw std::runtime_error("the database is not there");
    handle_all(app.router());
    const tuza::Histogram times = app.metrics().histogram("test_order_seconds", "Time of an order", {0.1, 1});
    app.router().handle("GET /order", [orders, times](Request& req, ResponseWriter& res) {
      orders.with(req.query_value("kind").value_or("")).add();
      times.observe(std::chrono::milliseconds(50));
      res.text("ordered\n");
    });
    app.admin().handle(*admin_route, [](Request&, ResponseWriter& res) { res.text("mine\n"); });
    std::string all = std::to_string(*count) + " " + std::to_string(size->count) + " " + *text;
    for (const std::string& item : *list) all += " " + item;
    app.router().handle("GET /place",
                        [place = text.place()](Request&, ResponseWriter& res) { res.text(place); });
    app.router().handle("GET /settings", [all](Request&, ResponseWriter& res) { res.text(all + "\n"); });
  });
}
