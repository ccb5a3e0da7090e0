// The interface of a layer between a Conn and its socket: TLS. Or of one that takes the place of the socket: connections in
// memory (netpoll/memory).
//
// Conn checks for a transport with one branch, and otherwise uses the Descriptor directly. A transport keeps
// the promises of Conn: reads exclude each other, and so do writes; deadlines, contexts and close() end every
// call; a write that has failed with a timeout may continue later at the same point.
//
// Thread-safe, except for destruction: a transport is owned by a Conn, whose descriptor outlives it.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <optional>
#include <span>

namespace tuza::net {

class LazyBuffer;

// What a Conn otherwise asks the kernel about its socket. Thread-safe; nothing parks.
class SocketStandIn {
 public:
  // As recv(2) with MSG_DONTWAIT, and with MSG_PEEK unless it `takes`: -errno if it fails.
  virtual long receive(std::span<char> into, bool takes) = 0;
  [[nodiscard]] virtual std::size_t unread() = 0;
  [[nodiscard]] virtual const Endpoint& local() const = 0;
  [[nodiscard]] virtual const Endpoint& remote() const = 0;

 protected:
  ~SocketStandIn() = default;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Reads into `lazy` if it is not null, otherwise into `into`. Parks.
  virtual Result<std::size_t> read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) = 0;
  // Changes `pieces`. `last`: also announces the end of the stream. Parks.
  virtual Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx, bool last) = 0;
  // As Conn::try_write(). Does not park.
  virtual Result<std::size_t> try_write(std::span<const std::byte> data) = 0;
  // Success if the handshake has succeeded, or its error if it has failed. Parks.
  virtual Result<void> handshake(const Context* ctx) = 0;
  [[nodiscard]] virtual std::optional<TlsInfo> tls_info() = 0;
  // Announces the end of the stream, and also ends the socket's stream. Parks.
  virtual Result<void> close_write() = 0;
  // Announces the end of the stream as close_write() does, if that has not been done and nothing is broken; a
  // server waits for a while until the peer's kernel has received it. For a caller that will neither read nor
  // write any more. Parks.
  virtual void farewell() = 0;
  // The connection is to be aborted: no end is announced from here on. Does not park.
  virtual void aborting() = 0;
  // The socket is about to be closed: announces the end of the stream if that needs no waiting. Does not
  // park.
  virtual void closing() = 0;
  // Whether a read may find something before it asks the socket. Nobody else may read meanwhile. Does not park.
  [[nodiscard]] virtual bool may_hold_data() { return false; }
  // Null: there is a socket below.
  [[nodiscard]] virtual SocketStandIn* stand_in() { return nullptr; }
};

}  // namespace tuza::net
