#include <tuza/http/server_stats.h>

#include <algorithm>

namespace tuza::http {

void ServerCounters::add_refused(int status) {
  const auto* found = std::find(kRefusedStatuses.begin(), kRefusedStatuses.end(), status);
  // RFC 9110 15: an unknown status counts as the x00 status of its class.
  add(refused_[found == kRefusedStatuses.end() ? 0
                                               : static_cast<std::size_t>(found - kRefusedStatuses.begin())]);
}

ServerStats ServerCounters::read(std::size_t open) const {
  const auto value = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
  ServerStats stats;
  stats.accepted = value(accepted);
  stats.open = open;
  for (std::size_t i = 0; i < refused_.size(); ++i) stats.refused[i] = value(refused_[i]);
  stats.idle_timeouts = value(idle_timeouts);
  stats.header_timeouts = value(header_timeouts);
  stats.body_timeouts = value(body_timeouts);
  stats.write_timeouts = value(write_timeouts);
  stats.handshake_timeouts = value(handshake_timeouts);
  stats.tls_failures = value(tls_failures);
  stats.handlers_thrown = value(handlers_thrown);
  return stats;
}

}  // namespace tuza::http
