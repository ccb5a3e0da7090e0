// The calls of libpq that framework/postgres.h makes.
#pragma once

#include <libpq-fe.h>
#include <tuza/netpoll/wait_fd.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/log.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <array>
#include <charconv>
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
inline Error lost(PGconn* conn, std::string_view op) {
  return {Errc::kClosed, op, one_line(PQerrorMessage(conn))};
}

inline std::optional<std::string> to_text(std::nullopt_t) { return std::nullopt; }
inline std::optional<std::string> to_text(std::string_view text) { return std::string(text); }
inline std::optional<std::string> to_text(const std::string& text) { return text; }
inline std::optional<std::string> to_text(const char* text) { return text; }
inline std::optional<std::string> to_text(std::same_as<bool> auto value) { return value ? "t" : "f"; }
template <class Number>
  requires((std::integral<Number> || std::floating_point<Number>) && !std::same_as<Number, bool>)
std::optional<std::string> to_text(Number value) {
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
  if (PQstatus(conn.get()) == CONNECTION_BAD) return std::unexpected(lost(conn.get(), "postgres connect"));
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
    const Result<void> ready = next == PGRES_POLLING_READING ? net::wait_readable(ctx, PQsocket(conn.get()))
                                                             : net::wait_writable(ctx, PQsocket(conn.get()));
    if (!ready) return std::unexpected(ready.error());
    // It may go on to the next address of the host, with another socket.
    next = blocking([&conn] { return PQconnectPoll(conn.get()); });
    if (next == PGRES_POLLING_FAILED) return std::unexpected(lost(conn.get(), "postgres connect"));
  }
  PQsetNoticeProcessor(
      conn.get(), [](void*, const char* text) { log_line(LogLevel::kInfo, "postgres: " + one_line(text)); },
      nullptr);
  if (PQsetnonblocking(conn.get(), 1) != 0) return std::unexpected(lost(conn.get(), "postgres connect"));
  return conn;
}

// Sends what libpq has buffered. The server may stop reading until its notices have been read, so both directions end
// the wait.
inline Result<void> flush(const Context& ctx, PGconn* conn) {
  for (;;) {
    const int left = PQflush(conn);
    if (left == 0) return {};
    if (left < 0) return std::unexpected(lost(conn, "postgres query"));
    if (Result<void> ready = net::wait_readable_or_writable(ctx, PQsocket(conn)); !ready) {
      return ready;
    }
    if (PQconsumeInput(conn) == 0) return std::unexpected(lost(conn, "postgres query"));
  }
}

// The next result of the query; null behind the last one.
inline Result<ResultOwner> next_result(const Context& ctx, PGconn* conn) {
  while (PQisBusy(conn) != 0) {
    if (const Result<void> ready = net::wait_readable(ctx, PQsocket(conn)); !ready) {
      return std::unexpected(ready.error());
    }
    if (PQconsumeInput(conn) == 0) return std::unexpected(lost(conn, "postgres query"));
  }
  return ResultOwner(PQgetResult(conn));
}

inline Result<ResultOwner> send_and_receive(const Context& ctx, PGconn* conn, const std::string& sql,
                                            const std::vector<std::optional<std::string>>& parameters) {
  std::vector<const char*> values;
  std::vector<int> sizes;
  for (const std::optional<std::string>& value : parameters) {
    values.push_back(value ? value->c_str() : nullptr);
    sizes.push_back(value ? static_cast<int>(value->size()) : 0);
  }
  const int sent = PQsendQueryParams(conn, sql.c_str(), static_cast<int>(values.size()), nullptr,
                                     values.data(), sizes.data(), nullptr, 0);
  if (sent == 0) return std::unexpected(lost(conn, "postgres query"));
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
inline Result<ResultOwner> execute(const Context& ctx, ConnOwner& conn, const std::string& sql,
                                   const std::vector<std::optional<std::string>>& parameters) {
  if (conn == nullptr) return std::unexpected(Error(Errc::kClosed, "postgres query"));
  if (ctx.done()) return std::unexpected(ctx.cause());
  for (const std::optional<std::string>& value : parameters) {
    // As the server would: libpq itself would send what is before the zero byte.
    if (value && value->contains('\0')) {
      return std::unexpected(
          Error(std::error_code(pack("22021"), category()), "postgres query", "a parameter has a zero byte"));
    }
  }
  Result<ResultOwner> result = send_and_receive(ctx, conn.get(), sql, parameters);
  if (!result) {
    if (ctx.done()) cancel(conn.get());
    conn.reset();
    return result;
  }
  switch (PQresultStatus(result->get())) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY: return result;
    default: break;
  }
  const char* state = PQresultErrorField(result->get(), PG_DIAG_SQLSTATE);
  if (state == nullptr) return std::unexpected(lost(conn.get(), "postgres query"));
  const char* text = PQresultErrorField(result->get(), PG_DIAG_MESSAGE_PRIMARY);
  return std::unexpected(
      Error(std::error_code(pack(state), category()), "postgres query", text != nullptr ? text : ""));
}

}  // namespace detail

inline const std::error_category& category() {
  static const detail::Category one;
  return one;
}

}  // namespace tuza::postgres
