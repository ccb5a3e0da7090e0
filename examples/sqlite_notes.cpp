// A REST service that keeps notes in an SQLite database: sqlite_notes --set notes.database=notes.db
//
//     GET    /notes?after=ID&limit=N   {"notes": [...], "next": ID or null}, by id; limit: default 20, at most 100
//     POST   /notes                    {"title": "...", "body": "..."}: 201 and the note, with its Location
//     GET    /notes/{id}               the note
//     PUT    /notes/{id}               body as for POST; replaces the note
//     DELETE /notes/{id}               204
//
// Errors are {"error": "..."}: 400 for bad input, 404, 413, 415; 503 with Retry-After while another process holds the
// lock of the database, or all connections are in use; 500 if the database cannot be read or written.
#include <tuza/examples/sqlite_notes/json.h>
#include <tuza/examples/sqlite_notes/store.h>
#include <tuza/framework/app.h>
#include <tuza/netpoll/directory.h>
#include <tuza/sched/log.h>

#include <charconv>
#include <chrono>
#include <expected>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
using notes::Store;
using tuza::http::Request;
using tuza::http::ResponseWriter;

constexpr std::size_t kRequestBytesMax = 512 << 10;  // JSON may write one byte as six
constexpr std::int64_t kPageDefault = 20, kPageMax = 100;

void refuse(ResponseWriter& res, int status, std::string_view message) {
  res.status(status);
  res.json(notes::error_json(message));
}

void report(ResponseWriter& res, const notes::StoreError& error) {
  if (error.kind == notes::StoreError::Kind::kBusy) {
    res.set_header("Retry-After", "1");
    return refuse(res, 503, error.message);
  }
  static tuza::LogLimiter limiter;
  limiter.log(tuza::LogLevel::kError, "database: " + error.message);
  refuse(res, 500, "the database cannot be used: " + error.message);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Returns a number from the query. If it is invalid, sends an error response and returns nothing.
std::optional<std::int64_t> query_number(Request& req, ResponseWriter& res, std::string_view name,
                                         std::int64_t otherwise, std::int64_t min, std::int64_t max) {
  const std::optional<std::string_view> text = req.query_value(name);
  if (!text) return otherwise;
  const std::optional<std::int64_t> value = number(*text);
  if (value && *value >= min && *value <= max) return value;
  refuse(
      res, 400,
      std::string(name) + ": expected a number from " + std::to_string(min) + " to " + std::to_string(max));
  return std::nullopt;
}

bool is_json(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  if (type.size() < kJson.size()) return false;
  for (std::size_t i = 0; i < kJson.size(); ++i) {
    const char c = type[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != kJson[i]) return false;
  }
  const std::string_view rest = type.substr(kJson.size());
  return rest.empty() || rest.front() == ';' || rest.front() == ' ';
}

// Returns the note in the request. If there is no valid note, returns nothing, and an error has been or will be sent.
std::optional<notes::NoteText> note_of(Request& req, ResponseWriter& res) {
  if (!is_json(req.header("Content-Type").value_or(""))) {
    refuse(res, 415, "Content-Type must be application/json");
    return std::nullopt;
  }
  const std::string too_large = "a request may have " + std::to_string(kRequestBytesMax) + " bytes";
  if (req.content_length().value_or(0) > kRequestBytesMax) {
    refuse(res, 413, too_large);
    return std::nullopt;
  }
  const tuza::Result<std::string_view> body = req.body();
  if (!body) return std::nullopt;  // malformed or too slow: the server answers
  if (body->size() > kRequestBytesMax) {
    refuse(res, 413, too_large);
    return std::nullopt;
  }
  std::expected<notes::NoteText, std::string> text = notes::parse_note(*body);
  if (text) return *std::move(text);
  refuse(res, 400, text.error());
  return std::nullopt;
}

void answer(ResponseWriter& res, const notes::Stored<std::optional<notes::Note>>& found) {
  if (!found) return report(res, found.error());
  if (!*found) return refuse(res, 404, "no such note");
  res.json(notes::to_json(**found));
}

void list(Store& store, Request& req, ResponseWriter& res) {
  const auto after = query_number(req, res, "after", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (!after) return;
  const auto limit = query_number(req, res, "limit", kPageDefault, 1, kPageMax);
  if (!limit) return;
  const auto page = store.list(*after, static_cast<int>(*limit));
  if (!page) return report(res, page.error());
  res.json(notes::to_json(*page));
}

void add(Store& store, Request& req, ResponseWriter& res) {
  const auto text = note_of(req, res);
  if (!text) return;
  const auto note = store.add(*text);
  if (!note) return report(res, note.error());
  res.status(201);
  res.set_header("Location", "/notes/" + std::to_string(note->id));
  res.json(notes::to_json(*note));
}

void replace(Store& store, Request& req, ResponseWriter& res) {
  const auto id = number(req.path_value("id").value_or(""));
  if (!id) return refuse(res, 404, "no such note");
  if (const auto text = note_of(req, res)) answer(res, store.replace(*id, *text));
}

void get(Store& store, Request& req, ResponseWriter& res) {
  const auto id = number(req.path_value("id").value_or(""));
  if (!id) return refuse(res, 404, "no such note");
  answer(res, store.get(*id));
}

void remove(Store& store, Request& req, ResponseWriter& res) {
  const auto id = number(req.path_value("id").value_or(""));
  if (!id) return refuse(res, 404, "no such note");
  const auto removed = store.remove(*id);
  if (!removed) return report(res, removed.error());
  if (!*removed) return refuse(res, 404, "no such note");
  res.no_content();
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("sqlite_notes");
  const auto database =
      app.setting("notes.database", "notes.db", "Database file; created if it does not exist");
  database.check([](const std::string& file) -> tuza::Result<void> {
    const auto folder = tuza::Directory::open(std::filesystem::absolute(file).parent_path().string());
    if (!folder) return std::unexpected(folder.error());
    return {};
  });
  const auto connections =
      app.setting("notes.connections", 4, "Maximum number of database connections", {1, 100});
  const auto busy_timeout =
      app.setting("notes.busy_timeout", 2000ms, "How long to wait for a locked database", {0ms, 60'000ms});
  std::unique_ptr<Store> store;
  return app.run(argc, argv, [&] {
    auto opened = Store::open({*database, static_cast<int>(*connections), *busy_timeout});
    if (!opened) throw std::runtime_error(database.place() + ": " + opened.error().message);
    store = *std::move(opened);
    app.metrics().add_pool("notes", [&store] { return store->stats(); });
    const auto route = [&](std::string_view pattern, void (*handler)(Store&, Request&, ResponseWriter&)) {
      app.router().handle(pattern, [&store = *store, handler](Request& req, ResponseWriter& res) {
        handler(store, req, res);
      });
    };
    route("GET /notes", list);
    route("POST /notes", add);
    route("GET /notes/{id}", get);
    route("PUT /notes/{id}", replace);
    route("DELETE /notes/{id}", remove);
  });
}
