// Public header, part of <tuza/net.h>.
//
// Listening sockets that a service manager has opened for this process: systemd's socket activation.
//
//     auto inherited = tuza::net::inherited_listeners().value();
//     for (auto& [name, listener] : inherited) if (name == "https") listener.use_tls(tls);
//
// The sockets wait while the service starts and restarts: no connection is refused meanwhile.
#pragma once

#include <tuza/netpoll/tcp.h>
#include <tuza/sched/result.h>

#include <string>
#include <vector>

namespace tuza::net {

struct InheritedListener {
  std::string name;  // FileDescriptorName= of the socket unit; "unknown" if it has none
  Listener listener;
};

// What LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES say, which are gone from the environment afterwards, so that
// programs started from here do not take them for theirs; a second call returns nothing. Empty if this
// process was not meant. An error if a variable is malformed or a descriptor is no listening stream socket;
// the sockets are closed then. Changes the environment: call it before other threads read that. Goroutines
// only.
Result<std::vector<InheritedListener>> inherited_listeners();

}  // namespace tuza::net
