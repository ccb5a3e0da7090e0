// A TCP connection over the loopback. Needs nothing of Tuza: tests that use it may run on systems to which Tuza is being ported.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tuza::net::testing {

struct Loopback {
  int client = ::socket(AF_INET, SOCK_STREAM, 0);
  int server = -1;  // its other end; -1: there is no connection

  Loopback() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<struct sockaddr*>(&address);
    socklen_t size = sizeof address;
    const bool connected = ::bind(listener, any, size) == 0 && ::getsockname(listener, any, &size) == 0 &&
                           ::listen(listener, 1) == 0 && ::connect(client, any, size) == 0;
    if (connected) server = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  ~Loopback() {
    ::close(client);
    close_server();
  }
  void close_server() {
    if (server >= 0) ::close(server);
    server = -1;
  }
};

}  // namespace tuza::net::testing
