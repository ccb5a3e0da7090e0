// A server that sends requests to itself, with public headers only.
#include <tuza/framework/log.h>
#include <tuza/http/server.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#ifndef SPDLOG_COMPILED_LIB
#error a second spdlog, with loggers of its own
#endif

using namespace std::chrono_literals;

namespace {

tuza::Result<std::string> ask(const tuza::net::Endpoint& server) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  auto conn = tuza::net::dial("tcp", tuza::net::to_string(server), deadline);
  if (!conn) return std::unexpected(conn.error());
  conn->set_deadline(deadline);
  const auto sent =
      conn->write_all("GET /hello/world HTTP/1.1\r\nHost: consumer\r\nConnection: close\r\n\r\n");
  if (!sent) return std::unexpected(sent.error());
  std::string answer;
  std::array<char, 512> buffer;
  while (true) {
    const auto n = conn->read(buffer);
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return answer;
    answer.append(buffer.data(), *n);
  }
}

}  // namespace

int main() {
  const tuza::Logging logging;
  spdlog::info("logged by {}", "the program");
  return tuza::run([]() -> int {
    tuza::http::Router router;
    router.handle("GET /hello/{name}", [](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
      tuza::sleep_for(1ms);
      res.text("Hello, " + req.path_value<std::string>("name") + "!\n");
    });
    tuza::http::Server server(std::move(router));
    if (const auto listening = server.listen("127.0.0.1:0"); !listening) {
      std::fprintf(stderr, "%s\n", listening.error().message().c_str());
      return 1;
    }
    tuza::WaitGroup serving;
    serving.go([&server] { (void)server.serve(); });
    const auto answer = ask(server.endpoint());
    server.shutdown();
    serving.wait();
    if (!answer) {
      std::fprintf(stderr, "%s\n", answer.error().message().c_str());
      return 1;
    }
    const bool right =
        answer->starts_with("HTTP/1.1 200 OK\r\n") && answer->ends_with("\r\n\r\nHello, world!\n");
    if (!right) std::fprintf(stderr, "wrong answer:\n%s\n", answer->c_str());
    return right ? 0 : 1;
  });
}
