#include <tuza/framework/app/notify.h>

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tuza/sched/arch/calls.h>

#include <cstdlib>
#include <cstring>

namespace tuza {

void notify_service_manager(std::string_view state) {
  const char* text = std::getenv("NOTIFY_SOCKET");
  if (text == nullptr) return;
  const std::string_view path(text);
  struct sockaddr_un address{};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const long fd = sys::socket(AF_UNIX, SOCK_DGRAM | sys::kCloseOnExec | sys::kNonBlocking, 0);
  if (fd < 0) return;
  const std::size_t length = offsetof(struct sockaddr_un, sun_path) + path.size();
  sys::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, &address, length);
  sys::close(fd);
}

}  // namespace tuza
