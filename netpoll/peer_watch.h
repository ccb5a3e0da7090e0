// Public header, part of <tuza/net.h>.
//
// Ends a context when the peer of a connection goes away, while the goroutine that serves it computes or waits elsewhere.
//
//     tuza::net::PeerWatch watch(conn, tuza::with_cancel(tuza::Context::background()));
//     auto answer = search(watch.context(), question);      // ends when nobody waits for the answer
//
// The peer goes away when it closes the connection or its side of it, when the connection is reset, and when it is
// closed here. Data of the peer that nobody has read yet does not hide that. The cause is Errc::kClosed; Errc::kCancelled if
// the shutdown of a server closes the connection. No goroutine waits, and no system call is made, until it happens: the
// poller reports it. Urgent data (MSG_OOB) counts as going away.
//
// One watch for each connection at a time; a second one ends the process. Thread-unsafe. The connection must outlive the
// watch, and must not be moved meanwhile.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/sched/sync/context.h>

namespace tuza::net {

class PeerWatch {
 public:
  // `made`: the context to end, and its canceller. The context also ends with this object.
  PeerWatch(Conn& conn, CancellableContext made);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  [[nodiscard]] const Context& context() const { return context_; }

 private:
  class Shared;
  Conn& conn_;
  const Context context_;
  Shared* const shared_;
};

}  // namespace tuza::net
