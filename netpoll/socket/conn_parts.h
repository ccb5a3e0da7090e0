// What this library and its tests need of a Conn or a Listener besides the interface. Internal: not installed.
#pragma once

#include <tuza/netpoll/listener.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace tuza::net {

class LazyBuffer;

struct detail::ConnParts {
  // `transport`, if not null, is the layer between the Conn and its socket (netpoll/socket/transport.h). `peer`: the
  // remote address, if it is known.
  static Conn make(DescriptorOwner descriptor, TransportOwner transport = nullptr,
                   std::optional<Endpoint> peer = std::nullopt) {
    return {std::move(descriptor), std::move(transport), peer};
  }
  static Listener make_listener(DescriptorOwner descriptor, Endpoint endpoint, std::string address) {
    return {std::move(descriptor), endpoint, std::move(address)};
  }

  // Of a connection in memory (netpoll/testing.h) it has no number.
  static Descriptor& descriptor(Conn& conn) { return *conn.descriptor_; }
  // Whether it has been moved away: no call may use it any more.
  static bool moved_from(const Conn& conn) { return conn.descriptor_ == nullptr; }
  // The layer above the descriptor; null if there is none.
  static Transport* transport(Conn& conn) { return conn.transport_.get(); }

  // As Conn::close(); `why` is the cause of the PeerWatch.
  static void close(Conn& conn, const Error& why);

  // As Conn::read(), but takes the buffer only when there is data to read: an idle connection needs no buffer. `ctx`: may
  // be null. Parks.
  static Result<std::size_t> read(Conn& conn, LazyBuffer& into, const Context* ctx = nullptr);
};

}  // namespace tuza::net
