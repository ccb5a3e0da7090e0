#include <tuza/framework/command_line.h>
#include <tuza/http/server.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

int main(int argc, char** argv) {
  const auto args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080");
  return tuza::run([&args] {
    tuza::http::Router router;
    router.handle("GET /hello/{name}", [](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
      res.text("Hello, " + req.path_value<std::string>("name") + "!\n");
    });
    router.handle("GET /slow", [](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
      // Blocks this goroutine, not the thread. The context ends when the client goes away.
      if (!tuza::sleep_for(req.context(), std::chrono::seconds(1))) return;
      res.text("That took a second.\n");
    });
    return args.explain(tuza::http::listen_and_serve(args.listen, std::move(router)));
  });
}
