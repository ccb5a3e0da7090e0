#include <tuza/http/server.h>

#include <signal.h>
#include <tuza/http/connection.h>
#include <tuza/netpoll/signals.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/sync/wait_group.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

namespace tuza::http {

Server::Server(Handler handler, ServerOptions options)
    : handler_(std::move(handler)), options_(std::move(options)) {}
Server::~Server() = default;

Result<void> Server::listen(std::string_view address) {
  Result<net::Listener> listener = net::listen("tcp", address);
  if (!listener) return std::unexpected(listener.error());
  server_ = std::make_unique<net::Server>(
      std::move(*listener),
      [this](net::Session& session) {
        session.conn().set_write_timeout(options_.write_timeout);
        Connection(session, handler_, options_).serve();
      },
      net::ServeOptions{.max_connections = options_.max_connections});
  return {};
}

const net::Endpoint& Server::endpoint() const {
  if (server_ == nullptr) rt::fatal("http::Server::endpoint() before listen()");
  return server_->endpoint();
}

Result<void> Server::serve() {
  if (server_ == nullptr) rt::fatal("http::Server::serve() before listen()");
  return server_->serve();
}

bool Server::shutdown() {
  return server_ == nullptr ||
         server_->shutdown(std::chrono::steady_clock::now() + options_.shutdown_timeout);
}

std::size_t Server::connections() const { return server_ == nullptr ? 0 : server_->connections(); }

Result<void> listen_and_serve(std::string_view address, Handler handler, ServerOptions options) {
  Server server(std::move(handler), std::move(options));
  if (Result<void> listening = server.listen(address); !listening) return listening;
  Result<net::SignalSet> signals = net::SignalSet::open({SIGTERM, SIGINT});
  if (!signals) return std::unexpected(signals.error());
  log_line(LogLevel::kInfo, "tuza: serving HTTP on " + net::to_string(server.endpoint()));
  WaitGroup waiting;
  waiting.go([&] {
    const Result<int> signal = signals->wait();
    if (!signal) return;
    log_line(LogLevel::kInfo, "tuza: " + std::string(*signal == SIGTERM ? "SIGTERM" : "SIGINT") +
                                  ": no new connections; requests in flight finish (again: end at once)");
    WaitGroup shutting_down;
    shutting_down.go([&] {
      server.shutdown();
      signals->close();
    });
    if (signals->wait()) std::_Exit(1);  // somebody is in a hurry
    shutting_down.wait();
  });
  Result<void> served = server.serve();
  signals->close();
  waiting.wait();
  return served;
}

}  // namespace tuza::http
