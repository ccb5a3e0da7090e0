// Where a service listens: the sockets that systemd hands over, else the addresses of its settings.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/netpoll/tcp.h>
#include <tuza/sched/result.h>

#include <optional>
#include <vector>

namespace tuza {

struct Listeners {
  std::vector<net::Listener> http;
  std::optional<net::Listener> admin;  // an inherited one is called "admin" (FileDescriptorName=)
};

// An error says which address it is about. Once. Goroutines only.
Result<Listeners> open_listeners(const config::Config& config);

}  // namespace tuza
