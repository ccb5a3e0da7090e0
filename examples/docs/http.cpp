// The code on docs/guide/http.md.
#include <tuza/http.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace http_page {

using namespace std::chrono_literals;
using tuza::http::Request;
using tuza::http::ResponseWriter;

struct Row {
  std::string csv() const { return "1,2\n"; }
};
std::vector<Row> rows() { return {}; }
std::string find(std::string_view) { return {}; }
void store(std::span<const std::byte>) {}
void note(std::string_view, int, std::uint64_t, std::chrono::nanoseconds) {}
bool is_allowed(std::string_view) { return true; }

void routes(tuza::http::Router& router) {
  //! [routes]
  router.handle("GET /", [](Request&, ResponseWriter& res) { res.text("home\n"); });
  router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
    const std::string item = find(req.path_value("id"));  // decoded
    if (item.empty()) return res.error(404);
    res.json(item);
  });
  router.handle("/old/{rest...}", [](Request&, ResponseWriter& res) { res.error(410); });
  //! [routes]
}

//! [body]
void upload(Request& req, ResponseWriter& res) {
  std::array<std::byte, 16384> piece;
  for (;;) {
    const tuza::Result<std::size_t> n = req.read_body(piece);
    if (!n) return;  // malformed, too large, too slow, cut off: the server answers
    if (*n == 0) break;
    store(std::span(piece).first(*n));
  }
  res.status(204);
}
//! [body]

//! [stream]
void report(Request&, ResponseWriter& res) {
  res.header("Content-Type", "text/csv");
  for (const Row& row : rows()) {
    if (!res.write(row.csv())) return;  // the client has gone, or reads nothing
  }
}
//! [stream]

//! [middleware]
tuza::http::Middleware timed() {
  return [](tuza::http::Handler next) -> tuza::http::Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) {
      const auto begun = std::chrono::steady_clock::now();
      tuza::http::observe(next, req, res, [&](int status) {
        note(req.target(), status, res.bytes_written(), std::chrono::steady_clock::now() - begun);
      });
    };
  };
}

tuza::http::Middleware only_with_token() {
  return [](tuza::http::Handler next) -> tuza::http::Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) {
      if (!is_allowed(req.header("Authorization").value_or(""))) return res.error(401);
      next(req, res);
    };
  };
}

tuza::http::Handler assemble(tuza::http::Router router) {
  return tuza::http::with(std::move(router), timed(), only_with_token());  // timed() is the outermost
}
//! [middleware]

void files(tuza::http::Router& router) {
  //! [files]
  router.handle("/assets/", tuza::http::FileServer("/srv/assets",
                                                   {.prefix = "/assets/", .cache_control = "max-age=3600"}));
  //! [files]
}

//! [server]
tuza::Result<void> serve_until(const tuza::Context& end, tuza::http::Handler handler) {
  tuza::http::Server server(std::move(handler), {.body_bytes_max = 1 << 20, .shutdown_timeout = 5s});
  if (auto listening = server.listen("127.0.0.1:8080"); !listening) return listening;
  tuza::WaitGroup others;
  others.go([&] {
    end.wait();
    server.shutdown();  // false: some requests had to be cut off
  });
  auto served = server.serve();
  others.wait();
  return served;
}
//! [server]

}  // namespace http_page
