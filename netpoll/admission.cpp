// Who may come to a Server, and who must go for it.
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/log.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

using namespace std::chrono_literals;

void count(std::atomic<std::uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void Server::admit(Conn conn) {
  static LogLimiter not_a_proxy;
  std::optional<AddressCounts::Held> held = AddressCounts::Held();
  if (options_.proxy_protocol == ProxyProtocol::kOff) {
    held = hold_address(conn);
    if (!held) return;
  } else {
    const Result<Endpoint> peer = conn.remote_endpoint();
    if (!any_contains(options_.proxies, peer ? std::optional(*peer) : std::nullopt)) {
      count(not_from_proxy_);
      return not_a_proxy.log(LogLevel::kWarning,
                             "tuza: " + conn.remote_address().value_or("-") +
                                 " is none of the proxies that may connect; it is closed");
    }
  }
  if (wait_for_slot()) start(std::move(conn), std::move(*held));
}

// nullopt: the client has too many connections.
std::optional<AddressCounts::Held> Server::hold_address(const Conn& conn) {
  static LogLimiter too_many;
  const Result<Endpoint> client = conn.remote_endpoint();
  if (!client) return AddressCounts::Held();
  std::optional<AddressCounts::Held> held = addresses_.try_hold(*client);
  if (held) return held;
  count(over_address_max_);
  too_many.log(LogLevel::kWarning, "tuza: " + conn.remote_address().value_or("-") +
                                       ": too many connections from this address to " + address() +
                                       "; it is closed");
  return held;
}

// Learns from the proxy who the client is. False: the connection is to be closed.
bool Server::meet_client(Session& session, AddressCounts::Held& held) {
  static LogLimiter bad_header;
  Conn& conn = session.conn();
  const std::string proxy = conn.remote_address().value_or("-");
  conn.set_read_deadline(time_after_now(options_.proxy_header_timeout));
  // A connection without a client is the first to make room, and the first to go at a shutdown.
  if (!session.begin_idle()) return false;
  const Result<ProxyHeader> header = receive_proxy_header(conn);
  session.end_idle();
  if (!header && (session.draining() || session.makes_room())) return false;
  if (!header) {
    count(bad_proxy_headers_);
    bad_header.log(LogLevel::kWarning, "tuza: from " + proxy + ": " + header.error().message());
    return false;
  }
  conn.set_read_deadline(kNoDeadline);
  if (!header->client) return true;
  std::optional<AddressCounts::Held> of_client = hold_address(conn);
  if (of_client) held = std::move(*of_client);
  return of_client.has_value();
}

// A client waits. False: the server shuts down.
bool Server::wait_for_slot() {
  static LogLimiter limit_reached;
  for (auto waited = kPatience; !slots_->try_acquire(); waited += 1ms) {
    if (draining_.load(std::memory_order_relaxed)) return false;
    if (waited >= kPatience) {
      if (make_room() == 0) {
        limit_reached.log(LogLevel::kWarning, "tuza: " + address() + ": " + std::to_string(connections()) +
                                                  " connections are open, the limit, and none is idle; new "
                                                  "connections wait");
      }
      waited = 0ms;
    }
    sleep_for(1ms);
  }
  return true;
}

// Interrupts the sessions that have been idle for longest. As looking for them takes a look at every session, several go at
// once if there may be many.
std::size_t Server::make_room() {
  const auto wanted = static_cast<std::size_t>(1 + slots_max_ / 32);
  std::vector<std::pair<std::int64_t, Session*>> idle;
  const LockGuard lock(mutex_);
  const NoPreempt keep_going;  // as in for_each_session()
  for (Session* session = sessions_; session != nullptr; session = session->next_) {
    if (session->idle_.load(std::memory_order_relaxed))
      idle.emplace_back(session->idle_since_ns_.load(std::memory_order_relaxed), session);
  }
  const std::size_t n = std::min(wanted, idle.size());
  std::ranges::partial_sort(idle, idle.begin() + static_cast<std::ptrdiff_t>(n));
  for (const auto& [since, session] : std::span(idle).first(n)) {
    session->makes_room_.store(true, std::memory_order_relaxed);
    session->interrupt_if_idle();
    count(made_room_);
  }
  return n;
}

}  // namespace tuza::net
