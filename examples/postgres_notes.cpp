// A REST service that keeps notes in PostgreSQL: postgres_notes --set notes.database="host=/run/postgresql dbname=notes"
//
//     GET    /notes?after=ID           {"notes": [...], "next": ID or null}: twenty by id
//     POST   /notes                    {"title": "...", "body": "..."}: 201 and the note, with its Location
//     GET    /notes/{id}               the note
//     DELETE /notes/{id}               204
//
// No query holds a thread: a goroutine waits for the server as it waits for its client. A request waits no longer than
// notes.timeout, a connection of the pool included; then its query is cancelled on the server, and the answer is 503.
#include <tuza/examples/sqlite_notes/json.h>
#include <tuza/framework/app.h>
#include <tuza/framework/postgres_pool.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/log.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace std::chrono_literals;
using tuza::Context;
using tuza::Result;
using tuza::http::Request;
using tuza::http::ResponseWriter;
using tuza::postgres::Rows;

constexpr int kPageNotes = 20;
constexpr std::string_view kSchema =
    "CREATE TABLE IF NOT EXISTS notes(id bigserial PRIMARY KEY, title text NOT NULL, body text NOT NULL,"
    " created timestamptz NOT NULL DEFAULT clock_timestamp())";
const std::string kColumns =
    "id, title, body, to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')";

void refuse(ResponseWriter& res, int status, std::string_view message) {
  res.status(status);
  res.json(notes::error_json(message));
}

void report(ResponseWriter& res, const tuza::Error& error) {
  static tuza::LogLimiter limiter;
  limiter.log(tuza::LogLevel::kError, error.message());
  if (error.code() == tuza::postgres::sqlstate("22021")) return refuse(res, 400, "the text has a zero byte");
  const bool unreachable =
      error.is(std::errc::connection_refused) || error.is(std::errc::connection_reset) || error.closed();
  if (!error.timeout() && !unreachable) return refuse(res, 500, "the database has refused the query");
  res.set_header("Retry-After", "1");
  refuse(res, 503, error.timeout() ? "the database takes too long" : "the database cannot be reached");
}

notes::Note note_at(const Rows& rows, int row) {
  const std::string created(rows.text(row, 3));
  return {rows.integer(row, 0),
          {std::string(rows.text(row, 1)), std::string(rows.text(row, 2))},
          created,
          created};
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

class Service {
 public:
  Service(std::string database, std::size_t connections, std::chrono::milliseconds timeout)
      : pool_(std::move(database), connections), timeout_(timeout) {}

  Result<Rows> create_table() {
    const auto [ctx, cancel] = tuza::with_timeout(Context::background(), timeout_);
    return pool_.query(ctx, std::string(kSchema));
  }

  void list(Request& req, ResponseWriter& res) {
    const auto after = number(req.query_value("after").value_or("0"));
    if (!after) return refuse(res, 400, "after: expected a number");
    const auto [ctx, cancel] = tuza::with_timeout(Context::background(), timeout_);
    const Result<Rows> rows = pool_.query(
        ctx, "SELECT " + kColumns + " FROM notes WHERE id > $1 ORDER BY id LIMIT $2", *after, kPageNotes + 1);
    if (!rows) return report(res, rows.error());
    notes::Page page;
    for (int i = 0; i < std::min(rows->size(), kPageNotes); ++i) page.notes.push_back(note_at(*rows, i));
    if (rows->size() > kPageNotes) page.next = page.notes.back().id;
    res.json(notes::to_json(page));
  }

  void add(Request& req, ResponseWriter& res) {
    const Result<std::string_view> body = req.body();
    if (!body) return;  // malformed or too slow: the server answers
    const auto text = notes::parse_note(*body);
    if (!text) return refuse(res, 400, text.error());
    const auto [ctx, cancel] = tuza::with_timeout(Context::background(), timeout_);
    const Result<Rows> rows = pool_.query(
        ctx, "INSERT INTO notes(title, body) VALUES ($1, $2) RETURNING " + kColumns, text->title, text->body);
    if (!rows) return report(res, rows.error());
    const notes::Note note = note_at(*rows, 0);
    res.status(201);
    res.set_header("Location", "/notes/" + std::to_string(note.id));
    res.json(notes::to_json(note));
  }

  //! [query]
  void get(Request& req, ResponseWriter& res) {
    const auto id = number(req.path_value("id").value_or(""));
    if (!id) return refuse(res, 404, "no such note");
    const auto [ctx, cancel] = tuza::with_timeout(Context::background(), timeout_);
    const Result<Rows> rows = pool_.query(ctx, "SELECT " + kColumns + " FROM notes WHERE id = $1", *id);
    if (!rows) return report(res, rows.error());
    if (rows->size() == 0) return refuse(res, 404, "no such note");
    res.json(notes::to_json(note_at(*rows, 0)));
  }
  //! [query]

  void remove(Request& req, ResponseWriter& res) {
    const auto id = number(req.path_value("id").value_or(""));
    if (!id) return refuse(res, 404, "no such note");
    const auto [ctx, cancel] = tuza::with_timeout(Context::background(), timeout_);
    const Result<Rows> rows = pool_.query(ctx, "DELETE FROM notes WHERE id = $1", *id);
    if (!rows) return report(res, rows.error());
    if (rows->affected() == 0) return refuse(res, 404, "no such note");
    res.no_content();
  }

  tuza::ResourceStats stats() const { return pool_.stats(); }

 private:
  tuza::postgres::Pool pool_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("postgres_notes");
  const auto database =
      app.setting("notes.database", "dbname=notes", "How to connect: libpq's conninfo, or a URI");
  const auto connections =
      app.setting("notes.connections", 4, "Maximum number of connections to the database", {1, 100});
  const auto timeout =
      app.setting("notes.timeout", 5000ms, "How long a request may wait for the database", {1ms, 600'000ms});
  std::optional<Service> service;
  return app.run(argc, argv, [&]() -> Result<void> {
    service.emplace(*database, static_cast<std::size_t>(*connections), *timeout);
    if (const auto created = service->create_table(); !created)
      return std::unexpected(tuza::errorf("{}: {}", database.place(), created.error()));
    app.metrics().add_pool("notes", [&service] { return service->stats(); });
    const auto route = [&](std::string_view pattern, void (Service::*handler)(Request&, ResponseWriter&)) {
      app.router().handle(pattern, [&service, handler](Request& req, ResponseWriter& res) {
        ((*service).*handler)(req, res);
      });
    };
    route("GET /notes", &Service::list);
    route("POST /notes", &Service::add);
    route("GET /notes/{id}", &Service::get);
    route("DELETE /notes/{id}", &Service::remove);
    return {};
  });
}
