#include <tuza/http/server.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

int main() {
  return tuza::run([] {
    tuza::http::Router router;
    router.handle("GET /hello/{name}", [](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
      res.text("Hello, " + std::string(req.path_value("name")) + "!\n");
    });
    router.handle("GET /slow", [](tuza::http::Request&, tuza::http::ResponseWriter& res) {
      tuza::sleep_for(std::chrono::seconds(1));  // blocks this goroutine, not the thread
      res.text("That took a second.\n");
    });
    return tuza::http::listen_and_serve("127.0.0.1:8080", std::move(router));
  });
}
