// One end of a connection in memory: the transport of its Conn.
//
// Locks, deadlines, contexts and waits are those of its descriptor in memory (Descriptor::transfer()); the bytes lie in the
// link that both ends share.
//
// Thread-safe, except for destruction, as every transport.
#pragma once

#include <tuza/netpoll/memory/link.h>
#include <tuza/netpoll/socket/transport.h>
#include <tuza/netpoll/tls.h>

#include <atomic>
#include <memory>
#include <optional>

namespace tuza::net::memory {

class MemoryTransport final : public Transport, public SocketStandIn {
 public:
  // `end`: 0 or 1. `descriptor` is in memory, and must outlive this object.
  MemoryTransport(std::shared_ptr<Link> link, int end, Descriptor& descriptor, const Endpoint& local,
                  const Endpoint& remote)
      : link_(std::move(link)), end_(end), descriptor_(descriptor), local_(local), remote_(remote) {
    link_->attach(end_, descriptor_);
  }
  ~MemoryTransport() override { link_->detach(end_); }

  Result<std::size_t> read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) override;
  Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx, bool last) override;
  Result<std::size_t> try_write(std::span<const std::byte> data) override;
  Result<void> handshake(const Context*) override { return {}; }
  std::optional<TlsInfo> tls_info() override { return std::nullopt; }
  Result<void> close_write() override;
  void farewell() override {}  // close() tells it
  void aborting() override { aborts_.store(true, std::memory_order_relaxed); }
  void closing() override { link_->close(end_, aborts_.load(std::memory_order_relaxed)); }
  SocketStandIn* stand_in() override { return this; }

  long receive(std::span<char> into, bool takes) override;
  std::size_t unread() override { return link_->unread(end_); }
  const Endpoint& local() const override { return local_; }
  const Endpoint& remote() const override { return remote_; }

  void order(Link::Side side, const Fault& fault) { link_->order(end_, side, fault); }

 private:
  const std::shared_ptr<Link> link_;
  const int end_;
  Descriptor& descriptor_;
  const Endpoint local_, remote_;
  std::atomic<bool> aborts_{false};  // relaxed: set before close() by the same caller, or as good as later
};

// Both ends of a new connection: that of `client`, and that of `server`.
struct ConnPair {
  Conn client, server;
};
[[nodiscard]] Result<ConnPair> connect_in_memory(const Endpoint& client, const Endpoint& server,
                                                 std::size_t buffer_bytes);

}  // namespace tuza::net::memory
