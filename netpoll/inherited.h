// Public header, part of <tuza/net.h>.
//
// Listening sockets opened by a service manager for this process: systemd's socket activation.
//
//     auto inherited = tuza::net::inherited_listeners().value();
//     for (auto& [name, listener] : inherited) if (name == "https") listener.use_tls(tls);
//
// The sockets queue connections while the service starts and restarts: no connection is refused meanwhile.
#pragma once

#include <tuza/netpoll/listener.h>
#include <tuza/sched/result.h>

#include <string>
#include <vector>

namespace tuza::net {

struct InheritedListener {
  std::string name;  // FileDescriptorName= of the socket unit; "unknown" if it has none
  Listener listener;
};

// Returns the sockets described by LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES. Removes these variables from
// the environment, so that child programs do not take the sockets for their own; a second call returns
// nothing. Empty if the variables are meant for another process. An error if a variable is malformed or a
// descriptor is not a listening stream socket; the sockets are then closed. Changes the environment: call it
// before other threads read the environment. Goroutines only.
[[nodiscard]] Result<std::vector<InheritedListener>> inherited_listeners();

}  // namespace tuza::net
