// Reports the state of the service to systemd: sd_notify(3), without its library.
#pragma once

#include <string_view>

namespace tuza {

// Sends "READY=1", "STOPPING=1" and the like to $NOTIFY_SOCKET. Does nothing if the variable is not set, or if nothing
// listens on the socket. Never waits.
void notify_service_manager(std::string_view state);

}  // namespace tuza
