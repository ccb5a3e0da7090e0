// What may stand between a Conn and its socket: TLS.
//
// Conn asks for it with one branch, and otherwise talks to the Descriptor itself. A transport has the
// promises of Conn: reads exclude each other, as do writes; deadlines, contexts and close() end every call; a
// write that has failed with a timeout may go on later where it was.
//
// Thread-safe, but for the end of its life: it belongs to a Conn, whose descriptor outlives it.
#pragma once

#include <tuza/netpoll/tcp.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <optional>
#include <span>

namespace tuza::net {

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Into `lazy` if that is not null, else into `into`. Parks.
  virtual Result<std::size_t> read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) = 0;
  // Changes `pieces`. `last`: and says that no more will come. Parks.
  virtual Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx, bool last) = 0;
  // Nothing if there was one; why, if it has failed. Parks.
  virtual Result<void> handshake(const Context* ctx) = 0;
  [[nodiscard]] virtual std::optional<TlsInfo> tls_info() = 0;
  // Says that no more will come, and ends the socket's stream, too. Parks.
  virtual Result<void> close_write() = 0;
  // Says so as close_write() does, if it has not been said, and nothing is broken; a server waits for a while
  // until the peer's kernel has it. For who will neither read nor write any more. Parks.
  virtual void farewell() = 0;
  // The connection is to be aborted: nothing is said any more, neither here nor there. Does not park.
  virtual void aborting() = 0;
  // The socket is about to be closed: says so if that can be done without waiting. Does not park.
  virtual void closing() = 0;
};

}  // namespace tuza::net
