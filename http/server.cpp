#include <tuza/http/server.h>

#include <signal.h>
#include <tuza/http/serve/request_loop.h>
#include <tuza/netpoll/signals.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {

using namespace std::chrono_literals;

Server::Server(Handler handler, ServerOptions options)
    : handler_(std::move(handler)), options_(std::move(options)) {
  if (!handler_) throw std::invalid_argument("http::Server: no handler");
}
Server::~Server() = default;

// The caller holds mutex_.
Result<void> Server::may_listen(std::string_view address) const {
  if (shut_down_) return std::unexpected(Error(Errc::kClosed, "listen", std::string(address)));
  if (server_ != nullptr) return std::unexpected(Error::from_errno(EBUSY, "listen", std::string(address)));
  return {};
}

Result<void> Server::listen(std::string_view address) {
  {
    // Check first, so that no port is taken for nothing.
    const std::scoped_lock lock(mutex_);
    if (Result<void> may = may_listen(address); !may) return may;
  }
  Result<net::Listener> listener = net::listen(address);
  if (!listener) return std::unexpected(listener.error());
  return listen(std::move(*listener));
}

Result<void> Server::listen(net::Listener&& listener) {
  const std::scoped_lock lock(mutex_);
  if (Result<void> may = may_listen(listener.address()); !may) return may;
  server_ = std::make_unique<net::Server>(
      std::move(listener),
      [this](net::Session& session) {
        ServerCounters::add(counters_.accepted);
        session.conn().set_write_timeout(options_.write_timeout);
        RequestLoop(session, handler_, options_, counters_).serve();
      },
      net::ServeOptions{.max_connections = options_.max_connections});
  return {};
}

net::Server* Server::listening() const {
  const std::scoped_lock lock(mutex_);
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
    const std::scoped_lock lock(mutex_);
    if (shut_down_) return {};
    server = server_.get();
  }
  if (server == nullptr) rt::fatal("http::Server::serve() before listen()");
  return server->serve();
}

bool Server::shutdown() {
  net::Server* server = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    shut_down_ = true;
    server = server_.get();
  }
  return server == nullptr || server->shutdown(net::time_after_now(options_.shutdown_timeout));
}

std::size_t Server::connections() const {
  const net::Server* server = listening();
  return server == nullptr ? 0 : server->connections();
}

ServerStats Server::stats() const { return counters_.read(connections()); }

namespace {

// How long the end of the server waits for its log line to be written.
constexpr std::chrono::milliseconds kLogTime{100};

void end_on_signal(Server& server, net::SignalSet& signals) {
  const Result<int> signal = signals.wait();
  if (!signal) return;
  // The shutdown begins before the log line is written, and does not wait for that line: standard error may
  // no longer have a reader.
  const auto logged = std::make_shared<std::atomic<bool>>(false);
  go([logged, number = *signal] {
    log_line(LogLevel::kInfo, "tuza: " + std::string(number == SIGTERM ? "SIGTERM" : "SIGINT") +
                                  ": no new connections; requests in flight finish (again: end at once)");
    logged->store(true);
  });
  WaitGroup shutting_down;
  shutting_down.go([&] {
    server.shutdown();
    signals.close();
  });
  if (signals.wait()) std::_Exit(1);  // second signal: do not wait
  shutting_down.wait();
  for (auto waited = 0ms; waited < kLogTime && !logged->load(); waited += 1ms) sleep_for(1ms);
}

// Handlers that have not ended still use the server. It stays reachable, so that leak checkers do not report
// it.
void keep_for_ever(std::unique_ptr<Server> server) {
  struct Kept {
    std::unique_ptr<Server> server;
    Kept* next;
  };
  static std::atomic<Kept*> all{nullptr};
  auto* kept = new Kept{std::move(server), nullptr};
  kept->next = all.exchange(kept);
}

}  // namespace

Result<void> listen_and_serve(std::string_view address, Handler handler, ServerOptions options) {
  auto server = std::make_unique<Server>(std::move(handler), std::move(options));
  if (Result<void> listening = server->listen(address); !listening) return listening;
  Result<net::SignalSet> signals = net::SignalSet::open({SIGTERM, SIGINT});
  if (!signals) return std::unexpected(signals.error());
  WaitGroup waiting;
  waiting.go([&] { end_on_signal(*server, *signals); });
  log_line(LogLevel::kInfo, "tuza: serving HTTP on " + server->address());
  Result<void> served = server->serve();
  signals->close();
  waiting.wait();
  const std::size_t left = server->connections();
  if (left == 0) return served;
  log_line(LogLevel::kError, "tuza: " + std::to_string(left) + (left == 1 ? " request" : " requests") +
                                 " did not end even after being cut off");
  keep_for_ever(std::move(server));
  return std::unexpected(Error(Errc::kTimeout, "shutdown"));
}

}  // namespace tuza::http
