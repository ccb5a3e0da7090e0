// A new socket that is closed automatically unless released, because any step of its setup may fail.
#pragma once

#include <sys/socket.h>
#include <tuza/sched/arch/calls.h>

#include <utility>

namespace tuza::net {

class NewSocket {
 public:
  // A non-blocking, close-on-exec stream socket.
  NewSocket(int family, int protocol)
      : fd_(sys::socket(family, SOCK_STREAM | sys::kNonBlocking | sys::kCloseOnExec, protocol)) {}
  ~NewSocket() {
    if (fd_ >= 0) sys::close(fd_);
  }
  NewSocket(const NewSocket&) = delete;
  NewSocket& operator=(const NewSocket&) = delete;

  // -errno if the socket could not be created.
  [[nodiscard]] long fd() const { return fd_; }
  int release() { return static_cast<int>(std::exchange(fd_, -1)); }
  long set(int level, int name, int value) const {
    return sys::setsockopt(fd_, level, name, &value, sizeof value);
  }

 private:
  long fd_;
};

}  // namespace tuza::net
