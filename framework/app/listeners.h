// Opens the listeners of a service: the sockets that systemd passes in, otherwise the addresses from its settings.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/netpoll/listener.h>

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace tuza {

struct Listeners {
  std::vector<net::Listener> http;
  std::optional<net::Listener> admin;  // an inherited socket must be named "admin" (FileDescriptorName=)
};

// An error names the setting and the address. Call once, on a goroutine.
std::expected<Listeners, std::string> open_listeners(const config::Config& config);

}  // namespace tuza
