// The smallest useful HTTP server, and the one that the load tests measure.
#include <tuza/framework/command_line.h>
#include <tuza/framework/log.h>
#include <tuza/http/server.h>
#include <tuza/sched/run.h>

using tuza::http::Request;
using tuza::http::ResponseWriter;

int main(int argc, char** argv) {
  const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080");
  const tuza::Logging logging;
  return tuza::run([&args] {
    tuza::http::Router router;
    const auto hello = [](Request&, ResponseWriter& res) { res.send("text/plain", "Hello, World!"); };
    router.handle("GET /", hello);
    router.handle("GET /plaintext", hello);
    router.handle("GET /json",
                  [](Request&, ResponseWriter& res) { res.json(R"({"message":"Hello, World!"})"); });
    router.handle("POST /echo", [](Request& req, ResponseWriter& res) {
      const tuza::Result<std::string_view> body = req.body();
      if (!body) return;  // malformed, too large or too slow: the server answers
      res.send(req.header("Content-Type").value_or("application/octet-stream"), *body);
    });
    return tuza::http::listen_and_serve(args.listen, std::move(router));
  });
}
