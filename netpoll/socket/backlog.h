// The interface of what takes the place of a listening socket: listeners in memory (netpoll/memory).
//
// Thread-safe. Owned by a Listener, with the descriptor through which accept() waits.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>

namespace tuza::net {

class Backlog {
 public:
  Backlog() = default;
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;
  virtual ~Backlog() = default;

  // As Listener::accept(). `descriptor`: the listener's. Parks.
  virtual Result<Conn> accept(Descriptor& descriptor, const Context* ctx) = 0;
  // Closes the connection that has waited for longest, if there is one. Does not park.
  virtual void drop_one() = 0;
  // Nobody will accept any more: the connections that wait are reset. May be repeated. Does not park.
  virtual void close() = 0;
};

}  // namespace tuza::net
