#include <tuza/http/testing_server.h>

#include <tuza/netpoll/tls.h>
#include <tuza/sched/rt/base/check.h>

#include <chrono>
#include <stdexcept>
#include <utility>

namespace tuza::http::testing {
namespace {

using namespace std::chrono_literals;

net::Listener listener_of(net::testing::MemoryNetwork* network, ServerSetup& setup) {
  Result<net::Listener> listener = network != nullptr ? network->listen() : net::listen("tcp", "127.0.0.1:0");
  if (!listener) throw std::runtime_error("http::testing::Server: " + listener.error().message());
  if (setup.tls != nullptr) listener->use_tls(setup.tls);
  return *std::move(listener);
}

std::unique_ptr<net::testing::MemoryNetwork> network_of(const ServerSetup& setup) {
  if (setup.socket) return nullptr;
  if (setup.tls != nullptr)
    throw std::invalid_argument("http::testing::Server: there is no TLS in memory, only with .socket = true");
  return std::make_unique<net::testing::MemoryNetwork>(
      net::testing::MemoryNetworkOptions{.buffer_bytes = setup.buffer_bytes});
}

}  // namespace

Server::Server(Handler handler, ServerSetup setup)
    : network_(network_of(setup)),
      tls_(setup.tls != nullptr),
      server_(std::move(handler), std::move(setup.server)) {
  if (setup.leak_check) leaks_.emplace();
  if (Result<void> listening = server_.listen(listener_of(network_.get(), setup)); !listening)
    throw std::runtime_error("http::testing::Server: " + listening.error().message());
  setup.client.address = address();
  setup.client.dial = setup.client.dial_tls = nullptr;
  if (network_ != nullptr) {
    setup.client.dial = setup.client.dial_tls = [this](const Context& ctx, const Url&) {
      return network_->dial(ctx, address());
    };
  }
  client_ = std::make_unique<Client>(std::move(setup.client));
  serving_.go([this] {
    if (const Result<void> served = server_.serve(); !served)
      rt::fatal("http::testing::Server: " + served.error().message());
  });
}

Server::~Server() { end(); }

void Server::end() {
  if (std::exchange(ended_, true)) return;
  client_->close_idle();
  server_.shutdown();
  serving_.wait();
  if (server_.connections() == 0) return;
  rt::fatal("http::testing::Server: handlers run that have not noticed the shutdown\n" +
            (leaks_ ? leaks_->report(0s) : std::string()));
}

std::string Server::close() {
  end();
  return leaks_ ? leaks_->report() : std::string();
}

std::string Server::url(std::string_view target) const {
  return (tls_ ? "https://" : "http://") + address() + std::string(target);
}

Result<net::Conn> Server::dial() {
  return network_ != nullptr ? network_->dial(address()) : net::dial("tcp", address());
}

net::testing::MemoryNetwork& Server::network() {
  if (network_ == nullptr) rt::fatal("http::testing::Server: with a socket there is no network in memory");
  return *network_;
}

}  // namespace tuza::http::testing
