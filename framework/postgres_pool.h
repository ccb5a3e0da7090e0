// Public header.
//
// A limited number of connections to PostgreSQL (framework/postgres.h), shared by all goroutines.
//
//     tuza::postgres::Pool pool("postgresql:///app", {.open_max = 8, .life_max = 1h});
//     auto rows = pool.query(ctx, "SELECT name FROM users WHERE id = $1", id);
//
// Thread-safe; goroutines only. A connection belongs to one call at a time; it is opened when one is needed and none is
// idle. One that is lost fails the call that uses it at that moment; a lost idle one is replaced. One that comes back in the middle
// of a transaction is closed, which rolls the transaction back. Callers wait for a connection in the order of their coming
// (sched/time/resource_pool.h).
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/framework/postgres.h>
#include <tuza/sched/time/resource_pool.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace tuza::postgres {

class Pool {
 public:
  // Connects to nothing yet.
  Pool(std::string conninfo, const ResourceLimits& limits, const ConnectionOptions& options = {})
      : connections_({.open = [conninfo = std::move(conninfo), options](
                                  const Context& ctx) { return Connection::open(ctx, conninfo, options); },
                      .check = [](const Context&, Connection& db) { return db.still_usable(); },
                      .reset =
                          [](Connection& db) {
                            return db.usable() && PQtransactionStatus(db.native()) == PQTRANS_IDLE;
                          },
                      .limits = limits}) {}
  // At most `connections` at once, at least one.
  Pool(std::string conninfo, std::size_t connections, const ConnectionOptions& options = {})
      : Pool(std::move(conninfo), ResourceLimits{.open_max = std::max<std::size_t>(connections, 1)},
             options) {}

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
    return connections_.use(ctx, std::move(function));
  }

  // From now on calls return Errc::kClosed, those that wait for a connection as well. Closes idle connections now, others
  // when their calls end. The destructor does the same.
  void close() { connections_.close(); }

  [[nodiscard]] ResourceStats stats() const { return connections_.stats(); }

 private:
  ResourcePool<Connection> connections_;
};

}  // namespace tuza::postgres
