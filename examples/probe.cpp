// Checks the health of a server on this machine: probe HOST:PORT PATH. For environments without curl, such as a
// container image. Exit status 0: the response has status 200; 1: the response has another status, or there is no
// response.
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/sched/run.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 3s;
constexpr std::string_view kGood = "HTTP/1.1 200 ";

// The first line of the response, or as much of it as arrived before the connection ended.
tuza::Result<std::string> ask(std::string_view address, std::string_view path) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  tuza::Result<tuza::net::Conn> conn = tuza::net::dial("tcp", address, deadline);
  if (!conn) return std::unexpected(conn.error());
  conn->set_deadline(deadline);
  std::string text = "GET " + std::string(path) + " HTTP/1.1\r\nHost: " + std::string(address);
  text += "\r\nConnection: close\r\n\r\n";
  if (const tuza::Result<void> written = conn->write_all(text); !written)
    return std::unexpected(written.error());
  text.clear();
  while (text.size() < kGood.size()) {
    char buffer[512];
    const tuza::Result<std::size_t> count = conn->read(buffer);
    if (!count) return std::unexpected(count.error());
    if (*count == 0) break;
    text.append(buffer, *count);
  }
  return text.substr(0, text.find('\r'));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "Usage: probe HOST:PORT PATH\n";
  if (argc == 2 && std::string_view(argv[1]) == "--help") return std::fputs(kUsage, stdout), 0;
  if (argc != 3 || argv[2][0] != '/') {
    std::fprintf(stderr, "probe: expected an address and a path that begins with /\n%s", kUsage);
    return 2;
  }
  return tuza::run([argv] {
    const tuza::Result<std::string> answer = ask(argv[1], argv[2]);
    if (answer && answer->starts_with(kGood)) return 0;
    std::fprintf(stderr, "probe: %s%s: %s\n", argv[1], argv[2],
                 answer ? answer->c_str() : answer.error().message().c_str());
    return 1;
  });
}
