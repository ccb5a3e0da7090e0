// Both ends of a long transfer, for measuring what lies in between: they cost little themselves, since no byte of it enters them.
//
//     bulk source PORT BYTES FILE   sends to each client the file, again and again, up to that many bytes, and ends the stream
//     bulk sink PORT                takes what comes, to the end of the stream, and prints how many bytes that were
//
// The source says "ready" when it listens. Loopback only. Neither uses Tuza.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace {

constexpr std::size_t kAtOnce = 1 << 20;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "bulk: %s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

struct sockaddr_in loopback(const char* port) {
  struct sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(port, nullptr, 10)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void send_to(int client, int file, std::uint64_t file_bytes, std::uint64_t left) {
  for (off_t offset = 0; left > 0;) {
    const std::uint64_t rest = std::min(left, file_bytes - static_cast<std::uint64_t>(offset));
    const ssize_t n = ::sendfile(client, file, &offset, rest);
    if (n <= 0) break;
    left -= static_cast<std::uint64_t>(n);
    if (static_cast<std::uint64_t>(offset) == file_bytes) offset = 0;
  }
  ::shutdown(client, SHUT_WR);
  char byte = 0;
  (void)::recv(client, &byte, 1, 0);  // until the client has gone, too
  ::close(client);
}

int source(const char* port, const char* bytes, const char* path) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a client that goes is an error of its sendfile()
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || ::fstat(file, &status) != 0 || status.st_size == 0) fail(path);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const struct sockaddr_in address = loopback(port);
  if (::bind(listener, reinterpret_cast<const struct sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 16) != 0) {
    fail("listen");
  }
  std::puts("ready");
  std::fflush(stdout);
  const std::uint64_t total = std::strtoull(bytes, nullptr, 10);
  for (;;) {
    const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) fail("accept");
    std::thread(send_to, client, file, static_cast<std::uint64_t>(status.st_size), total).detach();
  }
}

int sink(const char* port) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct sockaddr_in address = loopback(port);
  if (::connect(server, reinterpret_cast<const struct sockaddr*>(&address), sizeof address) != 0)
    fail("connect");
  std::uint64_t bytes = 0;
  for (;;) {
    // tcp(7): MSG_TRUNC takes bytes out of the socket, and copies them nowhere.
    const ssize_t n = ::recv(server, nullptr, kAtOnce, MSG_TRUNC);
    if (n < 0) fail("recv");
    if (n == 0) break;
    bytes += static_cast<std::uint64_t>(n);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(bytes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  if (kind == "source" && argc == 5) return source(argv[2], argv[3], argv[4]);
  if (kind == "sink" && argc == 3) return sink(argv[2]);
  std::fputs("usage: bulk source PORT BYTES FILE | bulk sink PORT\n", stderr);
  return 2;
}
