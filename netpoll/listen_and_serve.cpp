#include <tuza/netpoll/listen_and_serve.h>

#include <signal.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/signals.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/wait_group.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::net {
namespace {

void end_on_signal(Server& server, SignalSet& signals) {
  const Result<int> signal = signals.wait();
  if (!signal) return;  // the listener has failed
  signals.merge(*signal);
  const std::string name = *signal == SIGTERM ? "SIGTERM" : "SIGINT";
  const std::size_t open = server.connections();
  WaitGroup closing;
  closing.go([&] {
    server.shutdown(time_after_now(std::chrono::seconds(0)), name);
    signals.close();
  });
  log_line(LogLevel::kInfo, "tuza: " + name + ": no longer listening; closing " + std::to_string(open) +
                                (open == 1 ? " connection" : " connections"));
  if (signals.wait()) std::_Exit(1);  // second signal: do not wait
  closing.wait();
}

}  // namespace

Result<void> listen_and_serve(std::string_view address, ConnHandler handler) {
  if (!handler) throw std::invalid_argument("net::listen_and_serve: no handler");
  Result<Listener> listener = listen(address);
  if (!listener) return std::unexpected(listener.error());
  Result<SignalSet> signals = SignalSet::open({SIGTERM, SIGINT});
  if (!signals) return std::unexpected(signals.error());
  auto server = std::make_unique<Server>(
      std::move(*listener), [handler = std::move(handler)](Session& session) { handler(session.conn()); });
  log_line(LogLevel::kInfo, "tuza: listening on " + server->address());
  WaitGroup ending;
  ending.go([&] { end_on_signal(*server, *signals); });
  Result<void> served = server->serve();
  signals->close();
  ending.wait();
  if (server->connections() == 0) return served;
  keep_for_ever<std::unique_ptr<Server>>(std::move(server));  // the handlers left still use it
  return std::unexpected(Error(Errc::kTimeout, "shutdown"));
}

}  // namespace tuza::net
