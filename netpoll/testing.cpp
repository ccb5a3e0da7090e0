#include <tuza/netpoll/testing.h>

#include <tuza/netpoll/memory/memory_backlog.h>
#include <tuza/netpoll/memory/transport.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace tuza::net::testing {

// Who listens where, and which ports are free. Listeners leave by ending: the map does not hold them.
class MemoryNetwork::Hosts {
 public:
  explicit Hosts(const MemoryNetworkOptions& options) : options_(options) {}

  // Replaces the port 0 of `endpoint`. EADDRINUSE or EADDRNOTAVAIL; 0: the listener is known from now on.
  int enter(Endpoint& endpoint, const std::shared_ptr<memory::MemoryBacklog>& backlog) {
    const LockGuard lock(mutex_);
    std::erase_if(listeners_, [](const auto& entry) { return entry.second.expired(); });
    for (int tries = 0; endpoint.port() == 0 || (tries > 0 && listeners_.contains(endpoint)); ++tries) {
      if (tries == kPorts) return EADDRNOTAVAIL;
      endpoint = Endpoint(endpoint.address(), next_port());
    }
    return listeners_.emplace(endpoint, backlog).second ? 0 : EADDRINUSE;
  }
  [[nodiscard]] std::shared_ptr<memory::MemoryBacklog> find(const Endpoint& endpoint) {
    const LockGuard lock(mutex_);
    const auto at = listeners_.find(endpoint);
    return at == listeners_.end() ? nullptr : at->second.lock();
  }
  [[nodiscard]] Result<memory::ConnPair> connect(const Endpoint& server) {
    const Endpoint client(IpAddress::loopback_v4(), take_port());
    return memory::connect_in_memory(client, server, options_.buffer_bytes);
  }

 private:
  static constexpr std::uint16_t kFirstPort = 49'152;
  static constexpr int kPorts = 65'536 - kFirstPort;

  std::uint16_t take_port() {
    const LockGuard lock(mutex_);
    return next_port();
  }
  std::uint16_t next_port() TUZA_REQUIRES(mutex_) {
    return static_cast<std::uint16_t>(kFirstPort + ports_given_++ % kPorts);
  }

  const MemoryNetworkOptions options_;
  Mutex mutex_;
  std::map<Endpoint, std::weak_ptr<memory::MemoryBacklog>> listeners_ TUZA_GUARDED_BY(mutex_);
  std::uint32_t ports_given_ TUZA_GUARDED_BY(mutex_) = 0;
};

MemoryNetwork::MemoryNetwork(const MemoryNetworkOptions& options)
    : hosts_(std::make_unique<Hosts>(options)) {}
MemoryNetwork::~MemoryNetwork() = default;

Result<Listener> MemoryNetwork::listen(std::string_view address) {
  Result<Endpoint> endpoint = parse_endpoint(address);
  if (!endpoint) return std::unexpected(endpoint.error());
  const auto fail = [address](int number) {
    return std::unexpected(Error::from_errno(number, "listen", std::string(address)));
  };
  detail::DescriptorOwner descriptor(Descriptor::open_in_memory());
  if (descriptor == nullptr) return fail(ENOMEM);
  const auto backlog = std::make_shared<memory::MemoryBacklog>(*descriptor);
  if (const int refused = hosts_->enter(*endpoint, backlog); refused != 0) return fail(refused);
  Listener listener(std::move(descriptor), *endpoint, to_string(*endpoint));
  listener.backlog_ = backlog;
  return listener;
}

Result<Conn> MemoryNetwork::dial(std::string_view address) {
  const Result<Endpoint> endpoint = parse_endpoint(address);
  if (!endpoint) return std::unexpected(endpoint.error());
  const std::shared_ptr<memory::MemoryBacklog> backlog = hosts_->find(*endpoint);
  const auto refused = [address] {
    return std::unexpected(Error::from_errno(ECONNREFUSED, "dial", std::string(address)));
  };
  if (backlog == nullptr) return refused();
  Result<memory::ConnPair> made = hosts_->connect(*endpoint);
  if (!made) return std::unexpected(made.error());
  if (!backlog->add(std::move(made->server))) return refused();
  return std::move(made->client);
}

Result<Conn> MemoryNetwork::dial(const Context& ctx, std::string_view address) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  return dial(address);
}

Result<MemoryNetwork::Pair> MemoryNetwork::pair() {
  Result<memory::ConnPair> made = hosts_->connect(Endpoint(IpAddress::loopback_v4(), 1));
  if (!made) return std::unexpected(made.error());
  return Pair{std::move(made->client), std::move(made->server)};
}

void MemoryNetwork::fail_accepts(std::string_view address, std::error_code code, int times) {
  const Result<Endpoint> endpoint = parse_endpoint(address);
  if (!endpoint) return;
  if (const auto backlog = hosts_->find(*endpoint)) backlog->fail(code, times);
}

namespace {

void order_fault(Conn& conn, Descriptor::Side side, const memory::Fault& fault) {
  auto* transport = dynamic_cast<memory::MemoryTransport*>(detail::ConnParts::transport(conn));
  if (transport == nullptr) rt::fatal("fail_read() and fail_write() are for connections in memory");
  transport->order(side, fault);
}

}  // namespace

void fail_read(Conn& conn, std::error_code code, std::size_t after_bytes) {
  order_fault(conn, Descriptor::Side::kRead, {after_bytes, code});
}
void fail_write(Conn& conn, std::error_code code, std::size_t after_bytes) {
  order_fault(conn, Descriptor::Side::kWrite, {after_bytes, code});
}

}  // namespace tuza::net::testing
