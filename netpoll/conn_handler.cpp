#include <tuza/netpoll/conn_handler.h>

#include <tuza/sched/log.h>

#include <string>

namespace tuza::net::detail {

void log_failed_handler(Conn& conn, const Error& error) {
  static LogLimiter failures;
  const bool gone = error.closed() || error.is(Errc::kEndOfStream) || error.is(std::errc::connection_reset) ||
                    error.is(std::errc::broken_pipe);
  if (gone) return;
  const Result<std::string> peer = conn.remote_address();
  failures.log(LogLevel::kWarning,
               "tuza: connection from " + peer.value_or("an unknown address") + ": " + error.message());
}

}  // namespace tuza::net::detail
