// Sockets by system calls alone: for clients that are independent of goroutines, on any thread.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

namespace tuza::net::testing {

class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {}
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() {
    if (fd_ >= 0) ::close(fd_);
  }

  // A non-blocking client of `address`, which may not be connected yet.
  static RawSocket calling(const SocketName& address) {
    RawSocket made(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    made.connected_ = ::connect(made.fd_, address.address(), address.length) == 0;
    return made;
  }
  // Has a port of 127.0.0.1 that the system chooses, and does not listen there.
  static RawSocket bound() {
    RawSocket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return made;
  }
  // A listener on such a port.
  static RawSocket listening(int backlog) {
    RawSocket made = bound();
    EXPECT_EQ(::listen(made.fd_, backlog), 0);
    return made;
  }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  bool connected_ = false;
};

// "127.0.0.1:PORT" where nobody listens as long as this process runs. A port that was given back would soon be somebody else's:
// of the next listener here, or of a test beside this one.
inline const std::string& refusing_address() {
  static const RawSocket socket = RawSocket::bound();
  static const std::string address = [] {
    sockaddr_in name{};
    socklen_t length = sizeof name;
    EXPECT_EQ(::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length), 0);
    return "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }();
  return address;
}

}  // namespace tuza::net::testing
