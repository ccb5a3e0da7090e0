// The code on docs/guide/http.md.
#include <tuza/http.h>
#include <tuza/http/testing.h>
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
std::string find(int) { return {}; }
std::string find(std::string_view) { return {}; }
void store(std::span<const std::byte>) {}
void note(std::string_view, int, std::uint64_t, std::chrono::nanoseconds) {}
bool is_allowed(std::string_view) { return true; }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::string in_english(std::string_view text) { return std::string(text); }

std::string slow_query() { return {}; }
std::string render(const std::string& text) { return text; }

//! [hints]
void page(Request& req, ResponseWriter& res) {
  // Some old clients take a 103 for the answer.
  const bool browser = req.header("Sec-Fetch-Mode") == "navigate";
  if (browser && !res.early_hints("</app.css>; rel=preload; as=style")) return;
  res.html(render(slow_query()));
}
//! [hints]

//! [duplex]
void translate(Request& req, ResponseWriter& res) {
  auto [ctx, give_up] = tuza::with_cancel(req.context());
  if (!res.enable_full_duplex()) return;  // the body cannot be read, or the client has gone
  tuza::Chan<std::string> pieces(16);
  tuza::WaitGroup reading;
  reading.go([&, ctx = ctx] {
    std::array<std::byte, 4096> buffer;
    for (;;) {
      const auto n = req.read_body(ctx, buffer);
      const bool more = n && *n > 0 && pieces.send(ctx, text_of(std::span(buffer).first(*n)));
      if (!more) return pieces.close();
    }
  });
  for (const auto& piece : pieces) {
    if (!res.write(in_english(piece)) || !res.flush()) give_up();
  }
  reading.wait();  // both have ended when the handler returns
}
//! [duplex]

void routes(tuza::http::Router& router) {
  //! [routes]
  router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("home\n"); });
  router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
    const std::string item = find(req.path_value<int>("id"));  // decoded
    if (item.empty()) return res.error(404);
    res.json(item);
  });
  router.handle("/old/{rest...}", [](Request&, ResponseWriter& res) { res.error(410); });
  //! [routes]
}

constexpr char kNotFoundPage[] = "<!doctype html><title>Not found</title><p>Nothing is here.";
tuza::http::Middleware timed();
tuza::http::Middleware only_with_token();
void user(Request&, ResponseWriter&) {}

void groups(tuza::http::Router& router, tuza::http::Router reports) {
  //! [groups]
  router.use(timed());                           // around everything that this router answers
  auto api = router.group("/api/v1");            // patterns with this prefix
  api.use(only_with_token());                    // around the handlers that follow
  api.handle("GET /users/{id}", user);           // GET /api/v1/users/{id}
  router.mount("/reports", std::move(reports));  // a router that sees the path behind /reports
  //! [groups]
  //! [not_found]
  router.not_found([](Request&, ResponseWriter& res) { res.html(kNotFoundPage); });
  api.not_found([](Request&, ResponseWriter& res) { res.json(R"({"error": "no such path"})"); });
  api.method_not_allowed([](Request&, ResponseWriter& res) { res.json(R"({"error": "no such method"})"); });
  //! [not_found]
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
  res.no_content();
}
//! [body]

//! [stream]
void report(Request&, ResponseWriter& res) {
  res.set_header("Content-Type", "text/csv");
  for (const Row& row : rows()) {
    if (!res.write(row.csv())) return;  // the client has gone, or reads nothing
  }
}
//! [stream]

tuza::Result<std::string> ask_others(const tuza::Context&, std::string_view) { return ""; }

//! [context]
void search(Request& req, ResponseWriter& res) {
  auto [ctx, cancel] = tuza::with_timeout(req.context(), 2s);
  const auto answer = ask_others(ctx, req.query_value("q").value_or(""));
  if (answer) return res.json(*answer);
  res.error(504);  // or the client has gone, and nobody reads it
}
//! [context]

void test_of_items(const tuza::http::Router& router) {
  const auto expect = [](bool) {};
  //! [testing]
  const auto res = tuza::http::testing::call(router, "GET /items/7");
  expect(res.status == 200 && res.header("Content-Type") == "application/json");

  const auto made = tuza::http::testing::call(
      router, "POST /items", {.headers = {{"Authorization", "Bearer 1"}}, .body = R"({"name": "x"})"});
  expect(made.status == 201 && made.header("Location") == "/items/8");
  //! [testing]
}

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
      if (!is_allowed(req.header("Authorization").value_or(""))) {
        res.set_header("WWW-Authenticate", "Bearer");
        return res.error(401);
      }
      next(req, res);
    };
  };
}

tuza::http::Handler assemble(tuza::http::Router router) {
  return tuza::http::with(std::move(router), timed(), only_with_token());  // timed() is the outermost
}
//! [middleware]

//! [before_head]
tuza::http::Middleware server_timing() {
  return [](tuza::http::Handler next) -> tuza::http::Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) {
      const auto begun = std::chrono::steady_clock::now();
      tuza::http::before_head(next, req, res, [&](ResponseWriter& last) {
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
        last.set_header("Server-Timing", "app;dur=" + std::to_string(took.count()));
      });
    };
  };
}
//! [before_head]

//! [values]
struct User {
  std::string name;
};
inline constexpr tuza::http::Key<User> kUser;  // in a header that middleware and handlers include

tuza::http::Middleware authenticated() {
  return [](tuza::http::Handler next) -> tuza::http::Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) {
      const auto token = req.header("Authorization");
      if (token && is_allowed(*token)) req.set(kUser, {find(*token)});
      next(req, res);
    };
  };
}

void greet(Request& req, ResponseWriter& res) {
  const User* const user = req.get(kUser);  // null if none was set
  res.text(user != nullptr ? "hello, " + user->name + "\n" : "hello\n");
}
//! [values]

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
