// Public header.
//
// PostgreSQL by libpq, without a thread per query: its non-blocking calls, with net::wait_readable between them.
//
//     auto db = tuza::postgres::Connection::open(ctx, "postgresql:///app");
//     if (!db) return std::unexpected(db.error());
//     auto rows = db->query(ctx, "SELECT name FROM users WHERE id = $1", id);
//     if (!rows) return std::unexpected(rows.error());
//     for (int i = 0; i < rows->size(); ++i) use(rows->text(i, 0));
//
// For goroutines, one at a time for each connection. Every function with a Context parks.
//
// Errors. What the server refuses has the category postgres::category(), the SQLSTATE as its code (error.code() ==
// postgres::sqlstate("23505")), and the server's text in its message; the connection stays usable. A connection that
// cannot be made is std::errc::connection_refused with libpq's text, whatever its reason; one that is lost is
// std::errc::connection_reset, and from then on every query is Errc::kClosed. If the context ends,
// the query is cancelled on the server, its cause is returned, and the connection is closed: what the server has done
// is unknown. The server's notices go to the log.
//
// A statement that comes for the second time is prepared on the server, which then plans it no more at every call: let
// values be parameters. When a change of the schema makes it useless, it is prepared anew; only a transaction that has begun
// fails, once. It keeps the types that the parameters had on its first day as long as the server can do with them: when columns
// get other types, replace the connections. Through pgbouncer in its transaction mode: ConnectionOptions{.prepared_max = 0}.
//
// Header-only, since Tuza itself does not link libpq: link PostgreSQL::PostgreSQL (libpq-dev).
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/framework/detail/postgres.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::postgres {

// "23505" as the code of an error.
[[nodiscard]] inline std::error_code sqlstate(std::string_view five) {
  return {detail::pack(five), category()};
}

// The rows of a result, or nothing but their number if a statement returns none. Valid without the connection.
class Rows {
 public:
  explicit Rows(detail::ResultOwner result) : result_(std::move(result)) {}

  [[nodiscard]] int size() const { return PQntuples(result_.get()); }
  [[nodiscard]] int columns() const { return PQnfields(result_.get()); }
  [[nodiscard]] std::string_view column_name(int column) const { return PQfname(result_.get(), column); }
  // Rows that INSERT, UPDATE or DELETE has changed.
  [[nodiscard]] long affected() const { return std::strtol(PQcmdTuples(result_.get()), nullptr, 10); }

  // A value in PostgreSQL's text form; null: nothing. Valid as long as this object.
  [[nodiscard]] std::optional<std::string_view> value(int row, int column) const {
    if (PQgetisnull(result_.get(), row, column) != 0) return std::nullopt;
    return std::string_view(PQgetvalue(result_.get(), row, column),
                            static_cast<std::size_t>(PQgetlength(result_.get(), row, column)));
  }
  // The same; null is an empty text.
  [[nodiscard]] std::string_view text(int row, int column) const { return value(row, column).value_or(""); }
  // A value of a column of integers; null is 0.
  [[nodiscard]] long long integer(int row, int column) const {
    return std::strtoll(PQgetvalue(result_.get(), row, column), nullptr, 10);
  }

 private:
  detail::ResultOwner result_;
};

struct ConnectionOptions {
  // Statements that a connection keeps prepared, those used latest. 0: none is prepared, which a proxy needs that gives a
  // client another connection of the server with each transaction.
  std::size_t prepared_max = 256;
};

class Connection {
 public:
  // `conninfo`: key=value pairs or a URI, as everywhere with libpq; its connect_timeout is not looked at. Looking up a
  // host's name does not end with `ctx`.
  [[nodiscard]] static Result<Connection> open(const Context& ctx, const std::string& conninfo,
                                               const ConnectionOptions& options = {}) {
    Result<detail::ConnOwner> conn = detail::connect(ctx, conninfo);
    if (!conn) return std::unexpected(conn.error());
    return Connection(*std::move(conn), options);
  }

  // One statement. `parameters` are the values of $1, $2, ...: texts, chars, integers, floating-point numbers, bools,
  // std::nullopt, or std::optionals of these. Never build a statement from texts of others.
  template <class... Parameters>
  [[nodiscard]] Result<Rows> query(const Context& ctx, const std::string& sql,
                                   const Parameters&... parameters) {
    return query(ctx, sql, std::vector<std::optional<std::string>>{detail::to_text(parameters)...});
  }
  [[nodiscard]] Result<Rows> query(const Context& ctx, const std::string& sql,
                                   const std::vector<std::optional<std::string>>& parameters) {
    Result<detail::ResultOwner> result = detail::execute(ctx, conn_, statements_, sql, parameters);
    if (!result) return std::unexpected(result.error());
    return Rows(*std::move(result));
  }

  // False: it has been lost or closed, and can only be replaced.
  [[nodiscard]] bool usable() const { return conn_ != nullptr && PQstatus(conn_.get()) == CONNECTION_OK; }
  // The same of a connection that has been idle: looks at what the server has said meanwhile, its goodbye for example. Notices go
  // to the log, notifications wait for PQnotifies(). Does not park.
  [[nodiscard]] bool still_usable() {
    // The first round reads what the server says before it closes, and the second finds the end.
    for (int i = 0; i < 2 && usable(); ++i) {
      if (PQconsumeInput(conn_.get()) == 0) return false;
      (void)PQisBusy(conn_.get());  // parses what has come
    }
    return usable();
  }
  // For what is not here: COPY, notifications, large objects. Null if it has been closed.
  [[nodiscard]] PGconn* native() { return conn_.get(); }

 private:
  Connection(detail::ConnOwner conn, const ConnectionOptions& options)
      : conn_(std::move(conn)), statements_(options.prepared_max) {}
  detail::ConnOwner conn_;
  detail::PreparedStatements statements_;
};

}  // namespace tuza::postgres
