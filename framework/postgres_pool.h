// Public header.
//
// A limited number of connections to PostgreSQL (framework/postgres.h), shared by all goroutines.
//
//     tuza::postgres::Pool pool("postgresql:///app", 8);
//     auto rows = pool.query(ctx, "SELECT name FROM users WHERE id = $1", id);
//
// Thread-safe; goroutines only. A connection belongs to one call at a time; it is opened when one is needed and none is
// open. A lost one fails the call that finds it lost, and is replaced by a later one. One that comes back in the middle
// of a transaction is closed, which rolls the transaction back.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/framework/postgres.h>
#include <tuza/sched/sync/chan.h>

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tuza::postgres {

class Pool {
 public:
  // At most `connections` at once, at least one. Connects to nothing yet.
  Pool(std::string conninfo, std::size_t connections)
      : conninfo_(std::move(conninfo)), free_(connections == 0 ? 1 : connections) {
    for (std::size_t i = 0; i < free_.cap(); ++i) free_.send(std::nullopt);
  }

  // One statement, as Connection::query(). Waits for a free connection first. Parks.
  template <class... Parameters>
  [[nodiscard]] Result<Rows> query(const Context& ctx, const std::string& sql,
                                   const Parameters&... parameters) {
    return use(ctx, [&](Connection& db) { return db.query(ctx, sql, parameters...); });
  }

  // Calls `function(Connection&)`, which returns a Result, with a connection that it has for itself: for
  // transactions. Parks.
  template <class Function>
  [[nodiscard]] std::invoke_result_t<Function&, Connection&> use(const Context& ctx, Function function) {
    auto taken = free_.recv(ctx);
    if (!taken) return std::unexpected(taken.error());
    Lease lease{free_, *std::move(*taken)};  // the channel is never closed
    if (!lease.db) {
      Result<Connection> opened = Connection::open(ctx, conninfo_);
      if (!opened) return std::unexpected(opened.error());
      lease.db = *std::move(opened);
    }
    return function(*lease.db);
  }

 private:
  using Place = std::optional<Connection>;  // nothing: to be opened

  // Gives the connection back, also if the function throws.
  struct Lease {
    ~Lease() {
      if (db && (!db->usable() || PQtransactionStatus(db->native()) != PQTRANS_IDLE)) db.reset();
      free.send(std::move(db));  // there is room
    }
    Chan<Place>& free;
    Place db;
  };

  const std::string conninfo_;
  Chan<Place> free_;
};

}  // namespace tuza::postgres
