// What systemd wants to know of a service: sd_notify(3), without its library.
#pragma once

#include <string_view>

namespace tuza {

// Sends "READY=1", "STOPPING=1" and the like to $NOTIFY_SOCKET; does nothing if there is none, or it is not
// listening. Never waits.
void notify_service_manager(std::string_view state);

}  // namespace tuza
