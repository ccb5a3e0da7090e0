// The calls of libpq that framework/postgres.h makes.
#pragma once

#include <libpq-fe.h>
#include <tuza/framework/detail/postgres_statements.h>
#include <tuza/netpoll/wait_fd.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/log.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace tuza::postgres {

// Of errors that the server reports; the value is the SQLSTATE.
inline const std::error_category& category();

namespace detail {

struct Finish {
  void operator()(PGconn* conn) const { PQfinish(conn); }
  void operator()(PGresult* result) const { PQclear(result); }
  void operator()(PGcancel* cancel) const { PQfreeCancel(cancel); }
};
using ConnOwner = std::unique_ptr<PGconn, Finish>;
using ResultOwner = std::unique_ptr<PGresult, Finish>;

// A SQLSTATE is five digits or capital letters: a number of base 36, which fits into an int.
inline int pack(std::string_view five) {
  int value = 0;
  std::from_chars(five.data(), five.data() + five.size(), value, 36);
  return value;
}
inline std::string unpack(int value) {
  std::string five(5, '0');
  for (auto digit = five.rbegin(); digit != five.rend(); ++digit, value /= 36) {
    *digit = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[value % 36];
  }
  return five;
}

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "postgresql"; }
  [[nodiscard]] std::string message(int value) const override { return "SQLSTATE " + unpack(value); }
};

// libpq's texts end with a newline, and some have several lines, with tabs.
inline std::string one_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line(text);
  std::erase(line, '\t');
  std::ranges::replace(line, '\n', ' ');
  return line;
}
inline Error refused(PGconn* conn) {
  return {std::make_error_code(std::errc::connection_refused), "postgres connect",
          one_line(PQerrorMessage(conn))};
}
inline Error lost(PGconn* conn) {
  return {std::make_error_code(std::errc::connection_reset), "postgres query",
          one_line(PQerrorMessage(conn))};
}

inline std::optional<std::string> to_text(std::nullopt_t) { return std::nullopt; }
inline std::optional<std::string> to_text(std::string_view text) { return std::string(text); }
inline std::optional<std::string> to_text(const std::string& text) { return text; }
inline std::optional<std::string> to_text(const char* text) { return text; }
inline std::optional<std::string> to_text(std::same_as<bool> auto value) { return value ? "t" : "f"; }
inline std::optional<std::string> to_text(std::same_as<char> auto value) { return std::string(1, value); }
template <class Number>
  requires((std::integral<Number> || std::floating_point<Number>) && !std::same_as<Number, bool> &&
           !std::same_as<Number, char>)
std::optional<std::string> to_text(Number value) {
  if constexpr (std::floating_point<Number>) {
    if (std::isnan(value)) return "NaN";
  }
  std::array<char, 64> digits;
  return std::string(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
}
template <class T>
std::optional<std::string> to_text(const std::optional<T>& value) {
  return value ? to_text(*value) : std::nullopt;
}

inline Result<ConnOwner> connect(const Context& ctx, const std::string& conninfo) {
  // It looks up the name of the host, if there is one.
  ConnOwner conn(blocking([&conninfo] { return PQconnectStart(conninfo.c_str()); }));
  if (conn == nullptr) return std::unexpected(Error::from_errno(ENOMEM, "postgres connect"));
  if (PQstatus(conn.get()) == CONNECTION_BAD) return std::unexpected(refused(conn.get()));
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
    const Result<void> ready = next == PGRES_POLLING_READING ? net::wait_readable(ctx, PQsocket(conn.get()))
                                                             : net::wait_writable(ctx, PQsocket(conn.get()));
    if (!ready) return std::unexpected(ready.error());
    // It may go on to the next address of the host, with another socket.
    next = blocking([&conn] { return PQconnectPoll(conn.get()); });
    if (next == PGRES_POLLING_FAILED) return std::unexpected(refused(conn.get()));
  }
  PQsetNoticeProcessor(
      conn.get(), [](void*, const char* text) { log_line(LogLevel::kInfo, "postgres: " + one_line(text)); },
      nullptr);
  if (PQsetnonblocking(conn.get(), 1) != 0) return std::unexpected(refused(conn.get()));
  return conn;
}

// Sends what libpq has buffered. The server may stop reading until its notices have been read, so both directions end
// the wait.
inline Result<void> flush(const Context& ctx, PGconn* conn) {
  for (;;) {
    const int left = PQflush(conn);
    if (left == 0) return {};
    if (left < 0) return std::unexpected(lost(conn));
    if (Result<void> ready = net::wait_readable_or_writable(ctx, PQsocket(conn)); !ready) {
      return ready;
    }
    if (PQconsumeInput(conn) == 0) return std::unexpected(lost(conn));
  }
}

// The next result of the query; null behind the last one.
inline Result<ResultOwner> next_result(const Context& ctx, PGconn* conn) {
  while (PQisBusy(conn) != 0) {
    if (const Result<void> ready = net::wait_readable(ctx, PQsocket(conn)); !ready) {
      return std::unexpected(ready.error());
    }
    if (PQconsumeInput(conn) == 0) return std::unexpected(lost(conn));
  }
  return ResultOwner(PQgetResult(conn));
}

// The last result of what libpq was asked to send; `sent` is what its function has returned.
inline Result<ResultOwner> exchange(const Context& ctx, PGconn* conn, int sent) {
  if (sent == 0) return std::unexpected(lost(conn));
  if (const Result<void> flushed = flush(ctx, conn); !flushed) return std::unexpected(flushed.error());
  ResultOwner last;
  for (;;) {
    Result<ResultOwner> next = next_result(ctx, conn);
    if (!next) return next;
    if (*next == nullptr) break;
    last = *std::move(next);
    const ExecStatusType status = PQresultStatus(last.get());
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      return std::unexpected(Error::from_errno(ENOTSUP, "postgres query", "COPY"));
    }
  }
  return last;
}

// The parameters of a statement, as libpq takes them.
class Values {
 public:
  explicit Values(const std::vector<std::optional<std::string>>& values) {
    pointers_.reserve(values.size());
    sizes_.reserve(values.size());
    for (const std::optional<std::string>& value : values) {
      pointers_.push_back(value ? value->c_str() : nullptr);
      sizes_.push_back(value ? static_cast<int>(value->size()) : 0);
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(sizes_.size()); }
  [[nodiscard]] const char* const* pointers() const { return pointers_.data(); }
  [[nodiscard]] const int* sizes() const { return sizes_.data(); }

 private:
  std::vector<const char*> pointers_;
  std::vector<int> sizes_;
};

inline bool succeeded(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY;
}
inline std::string_view field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text != nullptr ? text : "";
}

inline Result<ResultOwner> run_unprepared(const Context& ctx, PGconn* conn, const std::string& sql,
                                          const Values& values) {
  return exchange(ctx, conn,
                  PQsendQueryParams(conn, sql.c_str(), values.count(), nullptr, values.pointers(),
                                    values.sizes(), nullptr, 0));
}

// Closes statements that have been forgotten. Only between transactions: there, a name that the server does not know does no
// harm.
inline Result<void> close_forgotten(const Context& ctx, PGconn* conn, PreparedStatements& statements) {
  if (PQtransactionStatus(conn) != PQTRANS_IDLE) return {};
  for (const std::string& name : statements.take_to_close()) {
    const Result<ResultOwner> closed = run_unprepared(ctx, conn, "DEALLOCATE " + name, Values({}));
    if (!closed) return std::unexpected(closed.error());
  }
  return {};
}

// What the server answers to the request to prepare the statement.
inline Result<ResultOwner> prepare(const Context& ctx, PGconn* conn, PreparedStatements& statements,
                                   PreparedStatements::Statement& statement) {
  std::string name = statements.new_name();
  Result<ResultOwner> result =
      exchange(ctx, conn, PQsendPrepare(conn, name.c_str(), statement.sql.c_str(), 0, nullptr));
  if (result && succeeded(result->get())) statement.name = std::move(name);
  return result;
}

inline Result<ResultOwner> run_prepared(const Context& ctx, PGconn* conn, PreparedStatements& statements,
                                        PreparedStatements::Statement& statement, const Values& values) {
  if (statement.name.empty()) {
    Result<ResultOwner> prepared = prepare(ctx, conn, statements, statement);
    if (!prepared || !succeeded(prepared->get())) return prepared;
  }
  return exchange(ctx, conn,
                  PQsendQueryPrepared(conn, statement.name.c_str(), values.count(), values.pointers(),
                                      values.sizes(), nullptr, 0));
}

// Whether the server has refused even to begin, for a reason that lies in preparing: the statement may run again without.
// What the error shows to be of no more use is forgotten.
inline bool never_began(const PGresult* refused, PreparedStatements& statements,
                        PreparedStatements::Statement& statement) {
  const std::string_view state = field(refused, PG_DIAG_SQLSTATE);
  if (statement.name.empty()) {
    if (state != "42P05") return false;
    // Its name is taken: a proxy lets its clients share the connections of the server.
    statements.stop();
    return true;
  }
  if (state == "26000" && field(refused, PG_DIAG_MESSAGE_PRIMARY).contains(statement.name)) {
    statements.forget_all();
    return true;
  }
  // "cached plan must not change result type". Messages are translated; the function's name is not (as pgjdbc does it).
  if (state != "0A000" || field(refused, PG_DIAG_SOURCE_FUNCTION) != "RevalidateCachedQuery") return false;
  statements.forget(statement);
  return true;
}

// The types of a prepared statement's parameters; none if the server does not know it any more.
inline Result<std::vector<Oid>> parameter_types(const Context& ctx, PGconn* conn, const std::string& name) {
  const Result<ResultOwner> described = exchange(ctx, conn, PQsendDescribePrepared(conn, name.c_str()));
  if (!described) return std::unexpected(described.error());
  std::vector<Oid> types;
  types.reserve(static_cast<std::size_t>(PQnparams(described->get())));
  for (int i = 0; i < PQnparams(described->get()); ++i) types.push_back(PQparamtype(described->get(), i));
  return types;
}

// A statement keeps the types of its parameters from its first day, so "not a number" or "no such operator" may be its fault:
// the columns have other types by now, or the search path leads to others. True: so it is, and the statement has been prepared
// anew.
inline Result<bool> renew_types(const Context& ctx, PGconn* conn, PreparedStatements& statements,
                                PreparedStatements::Statement& statement) {
  std::string old = statement.name;
  const Result<ResultOwner> prepared = prepare(ctx, conn, statements, statement);
  if (!prepared) return std::unexpected(prepared.error());
  if (!succeeded(prepared->get())) {  // it cannot be prepared any more
    statements.forget(statement);
    return false;
  }
  const Result<std::vector<Oid>> before = parameter_types(ctx, conn, old);
  if (!before) return std::unexpected(before.error());
  const Result<std::vector<Oid>> after = parameter_types(ctx, conn, statement.name);
  if (!after) return std::unexpected(after.error());
  statements.close(std::move(old));
  return *before != *after;
}

// A procedure may have committed a part before the error; all other statements have been rolled back, and may run again.
inline bool is_call(std::string_view sql) {
  constexpr std::string_view kCall = "call";
  sql.remove_prefix(std::min(sql.find_first_not_of(" \t\r\n"), sql.size()));
  return std::ranges::equal(sql.substr(0, kCall.size()), kCall, {}, [](char c) { return c | 0x20; });
}

inline bool may_be_of_types(const PGresult* refused) {
  const std::string_view state = field(refused, PG_DIAG_SQLSTATE);
  const bool is_of_text = state == "22P02" || state == "22003" || state == "22007" || state == "22008";
  return is_of_text || state.starts_with("42") || state.starts_with("XX");
}

inline Result<ResultOwner> run(const Context& ctx, PGconn* conn, PreparedStatements& statements,
                               const std::string& sql, const Values& values) {
  if (const Result<void> closed = close_forgotten(ctx, conn, statements); !closed)
    return std::unexpected(closed.error());
  PreparedStatements::Statement* statement = statements.seen_before(sql);
  if (statement == nullptr) return run_unprepared(ctx, conn, sql, values);
  Result<ResultOwner> result = run_prepared(ctx, conn, statements, *statement, values);
  if (!result || succeeded(result->get())) return result;
  const bool was_prepared = !statement->name.empty();
  const bool again = never_began(result->get(), statements, *statement);
  // In a transaction the refusal has been the end of it.
  const bool idle = PQtransactionStatus(conn) == PQTRANS_IDLE;
  if (again) return idle ? run_unprepared(ctx, conn, sql, values) : std::move(result);
  if (!was_prepared || !may_be_of_types(result->get())) return result;
  if (!idle) {
    statements.forget(*statement);
    return result;
  }
  const Result<bool> renewed = renew_types(ctx, conn, statements, *statement);
  if (!renewed) return std::unexpected(renewed.error());
  return *renewed && !is_call(sql) ? run_prepared(ctx, conn, statements, *statement, values)
                                   : std::move(result);
}

// The server stops the query soon after. A connection of its own carries the request, which libpq makes by blocking
// calls.
inline void cancel(PGconn* conn) {
  const std::unique_ptr<PGcancel, Finish> request(PQgetCancel(conn));
  if (request == nullptr) return;
  std::array<char, 256> why;
  blocking(CallLength::kLong,
           [&] { return PQcancel(request.get(), why.data(), static_cast<int>(why.size())); });
}

// Closes the connection if it cannot be used any more: the answer to the query is still to come.
inline Result<ResultOwner> execute(const Context& ctx, ConnOwner& conn, PreparedStatements& statements,
                                   const std::string& sql,
                                   const std::vector<std::optional<std::string>>& parameters) {
  constexpr std::string_view kOp = "postgres query";
  constexpr std::size_t kParametersMax = 65'535;  // of the protocol
  if (conn == nullptr) return std::unexpected(Error(Errc::kClosed, kOp));
  if (ctx.done()) return std::unexpected(ctx.cause());
  // As the server would: libpq itself would send what is before the zero byte.
  const auto zero_byte = [](const std::optional<std::string>& text) { return text && text->contains('\0'); };
  if (sql.contains('\0') || std::ranges::any_of(parameters, zero_byte)) {
    const std::error_code code(pack("22021"), category());
    return std::unexpected(Error(code, kOp, "a zero byte in the statement or a parameter"));
  }
  if (parameters.size() > kParametersMax) {
    const std::error_code code(pack("54023"), category());
    return std::unexpected(Error(code, kOp, "more than 65535 parameters"));
  }
  Result<ResultOwner> result = run(ctx, conn.get(), statements, sql, Values(parameters));
  if (!result) {
    if (ctx.done()) cancel(conn.get());
    conn.reset();
    return result;
  }
  if (succeeded(result->get())) return result;
  const std::string_view state = field(result->get(), PG_DIAG_SQLSTATE);
  if (state.empty()) return std::unexpected(lost(conn.get()));
  const std::string_view text = field(result->get(), PG_DIAG_MESSAGE_PRIMARY);
  return std::unexpected(Error(std::error_code(pack(state), category()), kOp, std::string(text)));
}

}  // namespace detail

inline const std::error_category& category() {
  static const detail::Category one;
  return one;
}

}  // namespace tuza::postgres
