#include <tuza/http/server.h>

#include <signal.h>
#include <tuza/http/h1/request_loop.h>
#include <tuza/http/serve/body_budget.h>
#include <tuza/netpoll/signals.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {

using namespace std::chrono_literals;

Server::Server(Handler handler, ServerOptions options)
    : handler_(std::move(handler)),
      options_(std::move(options)),
      bodies_(std::make_unique<BodyBudget>(options_.bodies_bytes_max)) {
  if (!handler_) throw std::invalid_argument("http::Server: no handler");
  check(options_);
}
Server::~Server() = default;

Result<void> Server::may_listen(std::string_view address) const {
  if (shut_down_) return std::unexpected(Error(Errc::kClosed, "listen", std::string(address)));
  if (server_ != nullptr) return std::unexpected(Error::from_errno(EBUSY, "listen", std::string(address)));
  return {};
}

Result<void> Server::listen(std::string_view address) {
  {
    // Check first, so that no port is taken for nothing.
    const LockGuard lock(mutex_);
    if (Result<void> may = may_listen(address); !may) return may;
  }
  Result<net::Listener> listener = net::listen(address);
  if (!listener) return std::unexpected(listener.error());
  return listen(std::move(*listener));
}

Result<void> Server::listen(net::Listener&& listener) {
  const LockGuard lock(mutex_);
  if (Result<void> may = may_listen(listener.address()); !may) return may;
  server_ = std::make_unique<net::Server>(
      std::move(listener),
      [this](net::Session& session) {
        ServerCounters::add(counters_.accepted);
        session.conn().set_write_timeout(options_.write_timeout);
        session.conn().set_write_rate_min(options_.response_rate_min_bytes_per_second);
        RequestLoop(session, handler_, options_, counters_, *bodies_).serve();
      },
      net::ServeOptions{.max_connections = options_.max_connections,
                        .connections_per_address_max = options_.connections_per_address_max,
                        .proxy_protocol = options_.proxy_protocol,
                        .proxies = options_.proxies,
                        .proxy_header_timeout = options_.header_timeout,
                        .stack_bytes = options_.stack_bytes,
                        .stack_setting = "http::ServerOptions::stack_bytes (http.stack of an App)"});
  return {};
}

net::Server* Server::listening() const {
  const LockGuard lock(mutex_);
  return server_.get();
}

net::Server& Server::after_listen(const char* call) const {
  net::Server* server = listening();
  if (server == nullptr) rt::fatal(std::string("http::Server::") + call + " before listen()");
  return *server;
}

const net::Endpoint& Server::endpoint() const { return after_listen("endpoint()").endpoint(); }
const std::string& Server::address() const { return after_listen("address()").address(); }

Result<void> Server::serve() {
  net::Server* server = nullptr;
  {
    const LockGuard lock(mutex_);
    if (shut_down_) return {};
    server = server_.get();
  }
  if (server == nullptr) rt::fatal("http::Server::serve() before listen()");
  if (server->connections() == 0) bodies_->clear();
  return server->serve();
}

bool Server::shutdown(std::string why) {
  net::Server* server = nullptr;
  {
    const LockGuard lock(mutex_);
    shut_down_ = true;
    server = server_.get();
  }
  return server == nullptr ||
         server->shutdown(net::time_after_now(options_.shutdown_timeout), std::move(why));
}

std::size_t Server::connections() const {
  const net::Server* server = listening();
  return server == nullptr ? 0 : server->connections();
}

ServerStats Server::stats() const {
  ServerStats stats = counters_.read(connections());
  if (const net::Server* server = listening(); server != nullptr) stats.connections = server->stats();
  stats.bodies_bytes = bodies_->held();
  return stats;
}

namespace {

// How long the end of the server waits for its log line to be written.
constexpr std::chrono::milliseconds kLogTime{100};

// Without waiting for the log: standard error may no longer have a reader.
void say_beside(const std::shared_ptr<std::atomic<bool>>& said, LogLevel level, std::string line) {
  go([said, level, line = std::move(line)] {
    log_line(level, line);
    said->store(true);
  });
}

void wait_for_line(const std::atomic<bool>& said) {
  for (auto waited = 0ms; waited < kLogTime && !said.load(); waited += 1ms) sleep_for(1ms);
}

// `cut_off`: the shutdown has cut requests off.
void end_on_signal(Server& server, net::SignalSet& signals, bool& cut_off) {
  const Result<int> signal = signals.wait();
  if (!signal) return;
  const auto logged = std::make_shared<std::atomic<bool>>(false);
  const std::string name = *signal == SIGTERM ? "SIGTERM" : "SIGINT";
  signals.merge(*signal);
  say_beside(logged, LogLevel::kInfo,
             "tuza: " + name + ": no new connections; requests in flight finish (again: end at once)");
  WaitGroup shutting_down;
  shutting_down.go([&] {
    cut_off = !server.shutdown(name);
    signals.close();
  });
  if (signals.wait()) {
    const auto said = std::make_shared<std::atomic<bool>>(false);
    say_beside(said, LogLevel::kError, "tuza: another signal: the process ends at once");
    wait_for_line(*said);
    std::_Exit(1);
  }
  shutting_down.wait();
  wait_for_line(*logged);
}

}  // namespace

Result<void> listen_and_serve(std::string_view address, Handler handler, ServerOptions options) {
  auto server = std::make_unique<Server>(std::move(handler), std::move(options));
  if (Result<void> listening = server->listen(address); !listening) return listening;
  Result<net::SignalSet> signals = net::SignalSet::open({SIGTERM, SIGINT});
  if (!signals) return std::unexpected(signals.error());
  WaitGroup waiting;
  bool cut_off = false;
  waiting.go([&] { end_on_signal(*server, *signals, cut_off); });
  log_line(LogLevel::kInfo, "tuza: serving HTTP on " + server->address());
  Result<void> served = server->serve();
  signals->close();
  waiting.wait();
  const std::size_t left = server->connections();
  if (left == 0 && cut_off && served)
    return std::unexpected(Error(Errc::kTimeout, "shutdown", "requests were cut off"));
  if (left == 0) return served;
  log_line(LogLevel::kError, "tuza: " + std::to_string(left) + (left == 1 ? " request" : " requests") +
                                 " did not end even after being cut off");
  keep_for_ever<std::unique_ptr<Server>>(std::move(server));  // the handlers left still use it
  return std::unexpected(Error(Errc::kTimeout, "shutdown"));
}

}  // namespace tuza::http
