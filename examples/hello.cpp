// The smallest useful HTTP server, and the one that the load tests measure.
#include <tuza/framework/app.h>

using tuza::http::Request;
using tuza::http::ResponseWriter;

int main(int argc, char** argv) {
  tuza::App app("hello");
  return app.run(argc, argv, [&app] {
    const auto hello = [](Request&, ResponseWriter& res) { res.send("text/plain", "Hello, World!"); };
    app.router().handle("GET /{$}", hello);
    app.router().handle("GET /plaintext", hello);
    app.router().handle("GET /json",
                        [](Request&, ResponseWriter& res) { res.json(R"({"message":"Hello, World!"})"); });
    app.router().handle("POST /echo", [](Request& req, ResponseWriter& res) {
      const tuza::Result<std::string_view> body = req.body();
      if (!body) return;  // malformed, too large or too slow: the server answers
      res.send(req.header("Content-Type").value_or("application/octet-stream"), *body);
    });
  });
}
