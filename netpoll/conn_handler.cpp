#include <tuza/netpoll/conn_handler.h>

#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/log.h>

#include <string>

namespace tuza::net::detail {

void log_failed_handler(Conn& conn, const Error& error) {
  static LogLimiter failures;
  const bool gone = error.closed() || error.is(Errc::kEndOfStream) || error.is(std::errc::connection_reset) ||
                    error.is(std::errc::broken_pipe);
  if (gone) return;
  // A handler may have moved its connection away, into TLS or to another owner.
  const std::string peer =
      ConnParts::moved_from(conn) ? "" : " from " + conn.remote_address().value_or("an unknown address");
  failures.log(LogLevel::kWarning, "tuza: connection" + peer + ": " + error.message());
}

}  // namespace tuza::net::detail
