#include <tuza/examples/sqlite_notes/store.h>

#include <sqlite3.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

namespace notes {
namespace {

using namespace std::chrono_literals;

// In the order in which Statement::note() reads the columns.
const std::string kColumns = "id, title, body, created, updated";
const std::string kNow = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

StoreError error_of(sqlite3* db) {
  const int code = sqlite3_errcode(db) & 0xff;
  const bool busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;
  return {busy ? StoreError::Kind::kBusy : StoreError::Kind::kFailed, sqlite3_errmsg(db)};
}

// A prepared statement, for one execution.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql) : db_(db) {
    result_ = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::int64_t value) {
    if (result_ == SQLITE_OK) result_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  // `text` must live until the last step().
  Statement& bind(std::string_view text) {
    if (result_ != SQLITE_OK) return *this;
    result_ =
        sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
    return *this;
  }
  // True: there is a row. False: there are no more rows, and changes have been stored.
  Stored<bool> step() {
    if (result_ == SQLITE_OK || result_ == SQLITE_ROW) result_ = sqlite3_step(statement_);
    if (result_ == SQLITE_ROW) return true;
    if (result_ == SQLITE_DONE) return false;
    return std::unexpected(error_of(db_));
  }
  [[nodiscard]] Note note() const { return {number(0), {text(1), text(2)}, text(3), text(4)}; }

 private:
  [[nodiscard]] std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  [[nodiscard]] std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int result_ = SQLITE_OK;
  int bound_ = 0;
};

// Returns the only row of a statement, if there is one. The change of a modifying statement is complete only when
// step() reports that there are no more rows.
Stored<std::optional<Note>> only_row(Statement& statement) {
  std::optional<Note> found;
  for (;;) {
    const Stored<bool> row = statement.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return found;
    found = statement.note();
  }
}

StoreError store_error(const tuza::Error& error) {
  const bool busy = error.is(std::errc::device_or_resource_busy);
  return {busy ? StoreError::Kind::kBusy : StoreError::Kind::kFailed, error.message()};
}

}  // namespace

void Store::Close::operator()(sqlite3* db) const {
  tuza::blocking([db] { sqlite3_close(db); });  // the last one writes the log back into the database
}

tuza::Result<Store::Connection> Store::connect(const StoreOptions& options) {
  sqlite3* db = nullptr;
  // Only one operation at a time uses a connection, so SQLite needs no lock of its own.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  int result = sqlite3_open_v2(options.path.c_str(), &db, flags, nullptr);
  Connection owner(db);  // also after an error there is one
  if (result == SQLITE_OK) {
    sqlite3_busy_timeout(db, static_cast<int>(options.busy_timeout.count()));
    // With a write-ahead log, readers do not wait for the writer. FULL: a commit returns only when it is on the disk.
    result = sqlite3_exec(
        db,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " title TEXT NOT NULL, body TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL)",
        nullptr, nullptr, nullptr);
  }
  if (result == SQLITE_OK) return owner;
  const StoreError error = error_of(db);
  const std::errc code =
      error.kind == StoreError::Kind::kBusy ? std::errc::device_or_resource_busy : std::errc::io_error;
  return std::unexpected(
      tuza::Error::from_text(std::make_error_code(code), options.path + ": " + error.message));
}

Store::Store(const StoreOptions& options)
    : options_(options),
      connections_(
          {.open =
               [this](const tuza::Context&) { return tuza::blocking([this] { return connect(options_); }); },
           .limits = {.open_max = static_cast<std::size_t>(options.connections)}}) {}

Stored<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  std::unique_ptr<Store> store(new Store(options));
  const auto first = store->connections_.acquire(tuza::Context());  // a wrong path is found now
  if (!first) return std::unexpected(store_error(first.error()));
  return store;
}

// Runs `operation` with a connection. All waiting happens here. While the database is locked, all connections wait for it,
// and the backlog of operations that wait for a connection would grow without bound. So an operation waits for a connection
// no longer than the busy timeout; then its client is told to try again.
template <class Operation>
auto Store::with_connection(Operation operation) -> decltype(operation(nullptr)) {
  const auto [ctx, cancel] = tuza::with_timeout(tuza::Context(), std::max(options_.busy_timeout, 1ms));
  const auto connection = connections_.acquire(ctx);
  if (!connection && connection.error().timeout()) {
    return std::unexpected(StoreError{StoreError::Kind::kBusy, "all connections to the database are in use"});
  }
  if (!connection) return std::unexpected(store_error(connection.error()));
  return tuza::blocking([&] { return operation((*connection)->get()); });
}

Stored<Page> Store::list(std::int64_t after, int limit) {
  return with_connection([&](sqlite3* db) -> Stored<Page> {
    Statement select(db, "SELECT " + kColumns + " FROM notes WHERE id > ? ORDER BY id LIMIT ?");
    select.bind(after).bind(std::int64_t{limit} + 1);  // the extra row tells whether there are more
    Page page;
    for (;;) {
      const Stored<bool> row = select.step();
      if (!row) return std::unexpected(row.error());
      if (!*row) return page;
      if (static_cast<int>(page.notes.size()) == limit) {
        page.next = page.notes.back().id;
        return page;
      }
      page.notes.push_back(select.note());
    }
  });
}

Stored<std::optional<Note>> Store::get(std::int64_t id) {
  return with_connection([&](sqlite3* db) {
    Statement select(db, "SELECT " + kColumns + " FROM notes WHERE id = ?");
    return only_row(select.bind(id));
  });
}

Stored<Note> Store::add(const NoteText& text) {
  return with_connection([&](sqlite3* db) -> Stored<Note> {
    Statement insert(db, "INSERT INTO notes (title, body, created, updated) VALUES (?, ?, " + kNow + ", " +
                             kNow + ") RETURNING " + kColumns);
    const Stored<std::optional<Note>> row = only_row(insert.bind(text.title).bind(text.body));
    if (!row) return std::unexpected(row.error());
    return row->value();
  });
}

Stored<std::optional<Note>> Store::replace(std::int64_t id, const NoteText& text) {
  return with_connection([&](sqlite3* db) {
    Statement update(db, "UPDATE notes SET title = ?, body = ?, updated = " + kNow +
                             " WHERE id = ? RETURNING " + kColumns);
    return only_row(update.bind(text.title).bind(text.body).bind(id));
  });
}

Stored<bool> Store::remove(std::int64_t id) {
  return with_connection([&](sqlite3* db) -> Stored<bool> {
    Statement erase(db, "DELETE FROM notes WHERE id = ? RETURNING " + kColumns);
    const Stored<std::optional<Note>> row = only_row(erase.bind(id));
    if (!row) return std::unexpected(row.error());
    return row->has_value();
  });
}

}  // namespace notes
