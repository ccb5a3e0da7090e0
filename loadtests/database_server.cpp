// The server of the scenario `database`: database_server [--listen HOST:PORT]
//
// GET /notes/{id} answers a row of the table `notes` in the database that libpq's environment names (PGHOST, ...): number,
// title and text with spaces between them. 16 connections, whose statements are prepared.
#include <tuza/framework/command_line.h>
#include <tuza/framework/postgres_pool.h>
#include <tuza/http/server.h>
#include <tuza/sched/run.h>

#include <string>

int main(int argc, char** argv) {
  const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080");
  return tuza::run([&args] {
    tuza::postgres::Pool pool("", 16);
    tuza::http::Router router;
    router.handle("GET /notes/{id}", [&pool](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
      const auto id = req.path_value<int>("id");
      const auto rows = pool.query(req.context(), "SELECT id, title, body FROM notes WHERE id = $1", id);
      if (!rows) return res.error(500);
      if (rows->size() == 0) return res.error(404);
      res.send("text/plain", std::to_string(rows->integer(0, 0)) + " " + std::string(rows->text(0, 1)) + " " +
                                 std::string(rows->text(0, 2)));
    });
    return args.explain(tuza::http::listen_and_serve(args.listen, std::move(router)));
  });
}
